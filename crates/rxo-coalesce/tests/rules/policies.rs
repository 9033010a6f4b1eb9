//! A policy under the generic tier delivers what the fast engine delivers.

use proptest::prelude::proptest;
use rxo_coalesce::Policy;
use rxo_testkit::promise::{Observed, Shown};
use rxo_testkit::script::{Script, property, scripts};

use crate::harness::settings::config;
use crate::{check_oracle, check_promises, harness, of_segments, run};

proptest! {
    #![proptest_config(property(200))]

    #[test]
    fn every_policy_delivers_what_the_fast_engine_delivers(script in scripts(150)) {
        let script = of_segments(script);
        let policy: Policy = config(&script.setup).policy;
        let observed = run::run(policy, &script);
        let most_hold = policy.time_limit().unwrap_or(policy.max_hold);
        check_promises(&script, &observed, most_hold);
        check_oracle(&policy, &script, &observed);
        assert_eq!(in_any_order(&observed), in_any_order(&harness::run(&script)));
        assert_eq!(observed.reasons, harness::run(&script).reasons);
    }

    /// With little memory, a hold may end early, but no promise is broken.
    #[test]
    fn the_promises_hold_with_little_memory(mut script in scripts(150)) {
        script.setup.batch_frames = 1 + script.setup.seed as usize % 8;
        let script: Script = of_segments(script);
        let policy = config(&script.setup).policy;
        let most_hold = policy.time_limit().unwrap_or(policy.max_hold);
        check_promises(&script, &run::run(policy, &script), most_hold);
    }
}

/// Returns the deliveries of each step, sorted: flows that leave together may do so in any order.
fn in_any_order(observed: &Observed) -> Vec<Vec<Shown>> {
    let sorted = |shown: &Vec<Shown>| {
        let mut shown = shown.clone();
        shown.sort_by(|one, other| one.frames.cmp(&other.frames));
        shown
    };
    observed.steps.iter().map(sorted).collect()
}
