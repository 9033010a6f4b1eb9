//! The promises, for arbitrary packets and every policy.

mod harness;

use std::collections::BTreeMap;
use std::iter::once;

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use rxo_testkit::oracle::Why;
use rxo_testkit::promise::{Observed, check_promises, matches_the_oracle};
use rxo_testkit::script::{Script, Setup, Step, property, scripts, scripts_for};

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
    fn a_frame_that_is_polled_alone_comes_out_as_one_that_is_pushed(script in scripts(MOST_EVENTS)) {
        let polled = one_by_one(&script, &[Step::Poll]);
        check(&polled);
        let pushed = harness::run(&one_by_one(&script, &[Step::Push, Step::EndOfPoll]));
        let polled = harness::run(&polled);
        prop_assert!(polled.deliveries().eq(pushed.deliveries()));
        prop_assert_eq!(all_reasons(&polled), all_reasons(&pushed));
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

/// Returns the frames of `script`, each followed by the steps `taken_by`.
fn one_by_one(script: &Script, taken_by: &[Step]) -> Script {
    let mut script = script.clone();
    let numbers = 0..script.frame_count();
    script.steps =
        numbers.flat_map(|n| once(Step::Frame(n)).chain(taken_by.iter().copied())).collect();
    script
}

fn all_reasons(observed: &Observed) -> BTreeMap<Why, u64> {
    let mut sums = BTreeMap::new();
    for (reason, count) in observed.reasons.iter().flatten() {
        *sums.entry(*reason).or_default() += count;
    }
    sums
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
