//! The generic tier: the promises for any rules, and its deliveries against an oracle that is derived from
//! the rules, and against the fast engine.

mod decryptors;
#[path = "../harness/mod.rs"]
mod harness;
mod juggler;
mod odd;
mod oracle;
mod order;
mod policies;
mod run;

use core::time::Duration;

use rxo_coalesce::rules::Rules;
use rxo_testkit::oracle::{HoldRule, PureAcks};
use rxo_testkit::promise::{
    Observed, acks_are_right, aggregates_are_right, aggregates_come_apart_again, every_frame_once,
};
use rxo_testkit::script::{Script, Setup};

/// Returns the script without the packets that the generic tier does not coalesce: only TCP segments with
/// payload stay.
fn of_segments(mut script: Script) -> Script {
    let setup = &mut script.setup;
    (setup.pure_acks, setup.udp, setup.tunnels) =
        (Some(PureAcks::Bypass), Some(false), Some(false));
    if matches!(setup.hold, Some(HoldRule::Auto { .. })) {
        setup.hold = Some(HoldRule::EndOfPoll);
    }
    script
}

/// Returns the script with the set-up of `policy`, apart from its link and its checksums.
fn under(policy: &'static str, mut script: Script) -> Script {
    let Setup { link, trusts_checksums, form, seed, batch_frames, .. } = script.setup;
    script.setup = Setup { link, trusts_checksums, form, seed, batch_frames, ..Setup::new(policy) };
    of_segments(script)
}

/// Checks the promises that hold for any rules. Rules may hold a segment for up to `most_hold`.
fn check_promises(script: &Script, observed: &Observed, most_hold: Duration) {
    every_frame_once(script, observed);
    aggregates_are_right(script, observed);
    acks_are_right(script, observed);
    aggregates_come_apart_again(script, observed);
    order::is_kept_or_restored(script, observed);
    order::holds_are_bounded(script, observed, most_hold);
}

/// Checks that the engine delivers what the oracle of `rules` expects, for the same reasons.
fn check_oracle<R: Rules>(rules: &R, script: &Script, observed: &Observed) {
    let expected = oracle::expected(rules, script);
    for (number, (seen, due)) in observed.steps.iter().zip(&expected).enumerate() {
        let seen_frames: Vec<_> = seen.iter().map(|shown| &shown.frames).collect();
        let due_frames: Vec<_> = due.iter().map(|due| &due.frames).collect();
        assert_eq!(seen_frames, due_frames, "step {number}: engine (left), oracle (right)");
        let mut counts = std::collections::BTreeMap::new();
        due.iter().for_each(|due| *counts.entry(due.why).or_insert(0) += 1);
        assert_eq!(observed.reasons[number], counts, "step {number}: reasons");
    }
}
