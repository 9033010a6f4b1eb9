//! A policy that changes between two polls: the promises hold across the change.

mod harness;

use harness::Change;
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
use proptest::{collection, sample};
use rxo_coalesce::Policy;
use rxo_frame::ConfigError;
use rxo_testkit::promise::{
    Observed, acks_are_right, aggregates_are_right, aggregates_come_apart_again, every_frame_once,
    order_is_kept,
};
use rxo_testkit::script::{Script, property, scripts, scripts_for};

const MOST_EVENTS: usize = 150;
const HOLDS: [&str; 5] = ["end-of-poll", "polls:3", "packets:7", "100us", "auto"];

/// Checks the promises that hold under every policy: nothing is lost, repeated, reordered or corrupted, and
/// the frames of an aggregate are the original ones.
fn check(script: &Script, changes: &[Change]) -> Observed {
    let observed = harness::run_changing(script, changes);
    every_frame_once(script, &observed);
    order_is_kept(script, &observed);
    aggregates_are_right(script, &observed);
    observed
}

fn held(policy: Policy, hold: &str) -> Policy {
    let mut policy = policy;
    policy.set("hold", hold).expect("a hold");
    policy
}

fn step() -> impl Strategy<Value = usize> {
    any::<sample::Index>().prop_map(|step| step.index(MOST_EVENTS))
}

proptest! {
    #![proptest_config(property(300))]

    #[test]
    fn every_promise_holds_while_the_policy_changes(
        script in scripts(MOST_EVENTS),
        changes in collection::vec(
            (step(), sample::select(Policy::all().to_vec()), sample::select(&HOLDS)),
            1..30,
        ),
    ) {
        let change = |(step, policy, hold)| -> Change {
            (step, Box::new(move |_| held(policy, hold)))
        };
        check(&script, &changes.into_iter().map(change).collect::<Vec<_>>());
    }

    /// The policies differ only in their hold rule, so the promises that depend on the policy hold as well.
    #[test]
    fn every_promise_holds_while_the_hold_changes(
        script in scripts_for("linux-gro", MOST_EVENTS),
        changes in collection::vec((step(), sample::select(&HOLDS)), 1..30),
    ) {
        let change = |(step, hold)| -> Change { (step, Box::new(move |policy| held(policy, hold))) };
        let observed = check(&script, &changes.into_iter().map(change).collect::<Vec<_>>());
        acks_are_right(&script, &observed);
        aggregates_come_apart_again(&script, &observed);
    }

    #[test]
    fn a_change_before_the_first_frame_is_as_if_it_had_begun_so(script in scripts(MOST_EVENTS)) {
        let same: Change = (0, Box::new(|policy| policy));
        prop_assert_eq!(harness::run_changing(&script, &[same]), harness::run(&script));
    }
}

#[test]
fn an_invalid_policy_changes_nothing() {
    let mut engine =
        rxo_coalesce::Engine::<Vec<u8>>::new(rxo_coalesce::Config::new(Policy::rsc2(), 1))
            .expect("numbers in range");
    let wrong = Policy { flows: 0, ..Policy::remember() };
    let changed = engine.change_policy(wrong, rxo_frame::Instant::ZERO, |_| panic!("delivered"));
    assert_eq!(changed, Err(ConfigError { name: "flows", value: 0, from: 1, to: 4_096 }));
    assert_eq!(engine.config().policy, Policy::rsc2());
}
