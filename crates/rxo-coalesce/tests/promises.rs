//! The promises, for arbitrary packets and every policy.

mod harness;

use proptest::prelude::{prop_assert_eq, proptest};
use rxo_testkit::promise::{check_promises, matches_the_oracle};
use rxo_testkit::script::{Script, Setup, property, scripts, scripts_for};

const MOST_EVENTS: usize = 150;

fn check(script: &Script) {
    let observed = harness::run(script);
    check_promises(script, &observed);
    matches_the_oracle(script, &observed);
}

proptest! {
    #![proptest_config(property(200))]

    #[test]
    fn every_promise_holds_for_any_policy(script in scripts(MOST_EVENTS)) {
        check(&script);
    }

    #[test]
    fn every_promise_holds_for_linux_gro(script in scripts_for("linux-gro", MOST_EVENTS)) {
        check(&script);
    }

    #[test]
    fn every_promise_holds_for_remember(script in scripts_for("remember", MOST_EVENTS)) {
        check(&script);
    }

    #[test]
    fn every_promise_holds_with_little_memory(mut script in scripts(MOST_EVENTS)) {
        script.setup.batch_frames = 1 + script.setup.seed as usize % 8;
        check_promises_but_holds(&script);
    }

    #[test]
    fn the_same_input_gives_the_same_output(script in scripts(MOST_EVENTS)) {
        prop_assert_eq!(harness::run(&script), harness::run(&script));
    }

    #[test]
    fn the_hash_seed_shows_nowhere(mut script in scripts(MOST_EVENTS)) {
        let before = harness::run(&script);
        script.setup.seed = !script.setup.seed;
        prop_assert_eq!(before, harness::run(&script));
    }
}

fn check_promises_but_holds(script: &Script) {
    check_promises(script, &harness::run(script));
}

#[test]
fn every_policy_of_the_design_exists_and_no_other() {
    let mut designed = Setup::policies().to_vec();
    let mut built: Vec<_> = rxo_coalesce::Policy::all().iter().map(|policy| policy.name).collect();
    designed.sort_unstable();
    built.sort_unstable();
    assert_eq!(designed, built);
}
