//! Checks that no frame is lost, repeated, reordered, or held too long.

use std::collections::BTreeMap;

use rxo_frame::Instant;

use super::{Observed, Shown, time_limit};
use crate::naive::Reading;
use crate::oracle::{self, Due, HoldRule, Why, are_related};
use crate::{Script, Step};

/// Checks that every frame is delivered once.
///
/// # Panics
/// If a frame is lost or repeated.
pub fn every_frame_once(script: &Script, observed: &Observed) {
    let mut seen = observed.frame_order();
    seen.sort_unstable();
    // The final flush pushes what the script left in the batch, so no frame is missing.
    let all: Vec<usize> = (0..script.frame_count()).collect();
    assert_eq!(seen, all, "frames delivered (left) are not the frames pushed (right)");
}

/// Checks that related frames are delivered in the order of arrival: frames of one flow, and a fragment or
/// broken packet with the flows between its addresses.
///
/// # Panics
/// If two related frames were swapped.
pub fn order_is_kept(script: &Script, observed: &Observed) {
    let readings: Vec<Reading> =
        (0..script.frame_count()).map(|index| script.reading(index)).collect();
    let order = observed.frame_order();
    for (place, later) in order.iter().enumerate() {
        for earlier in &order[place + 1..] {
            assert!(
                earlier > later || !are_related(&readings[*earlier], &readings[*later]),
                "frame {later} was delivered before frame {earlier}, which came first"
            );
        }
    }
}

/// Checks that the deliveries of every step, and their reasons, are exactly those of the oracle.
///
/// # Panics
/// If they are not.
pub fn matches_the_oracle(script: &Script, observed: &Observed) {
    let expected = oracle::expected(script);
    assert_eq!(observed.steps.len(), expected.len(), "steps");
    for (number, (seen, expected)) in observed.steps.iter().zip(&expected).enumerate() {
        let step = (number, script.steps.get(number));
        let shown: Vec<_> = seen.iter().map(|shown| &shown.frames).collect();
        let due: Vec<_> = expected.iter().map(|due| &due.frames).collect();
        assert_eq!(
            shown, due,
            "step {step:?} delivered (left) what the rules do not say (right); {:?}",
            script.setup
        );
        reasons_are_right(step, seen, &observed.reasons[number], expected);
    }
}

/// Compares reasons: an aggregate names its own; for other deliveries, the counters of the step are
/// compared.
fn reasons_are_right(
    step: (usize, Option<&Step>),
    seen: &[Shown],
    counted: &BTreeMap<Why, u64>,
    expected: &[Due],
) {
    for (shown, due) in seen.iter().zip(expected) {
        let said = shown.reason.map(Why::Flush);
        assert!(said.is_none_or(|said| said == due.why), "step {step:?}: {said:?} is not {due:?}");
    }
    let mut due = BTreeMap::new();
    for one in expected {
        *due.entry(one.why).or_insert(0) += 1;
    }
    assert_eq!(counted, &due, "step {step:?}: counted (left), expected (right) of {expected:?}");
}

/// Checks that no segment is held longer than the policy allows, counted from its push.
///
/// # Panics
/// If a segment was held too long.
pub fn holds_are_bounded(script: &Script, observed: &Observed) {
    let pushed_at = push_times(script);
    let limit = time_limit(script);
    let only_by_polls = script.setup.rules().hold == HoldRule::EndOfPoll;
    for shown in observed.deliveries() {
        let first = shown.frames[0];
        let held = shown.at.since(pushed_at[first]);
        assert!(
            only_by_polls || held <= limit,
            "frame {first} was held for {held:?}, which is more than {limit:?}"
        );
    }
    if only_by_polls {
        nothing_outlives_its_poll(script, observed);
    }
}

/// Checks for a work-conserving policy that everything pushed is delivered by the end of the poll.
fn nothing_outlives_its_poll(script: &Script, observed: &Observed) {
    let mut added = 0;
    let mut pushed = 0;
    let mut out = 0;
    for (step, shown) in script.steps.iter().zip(&observed.steps) {
        added += usize::from(matches!(step, Step::Frame(_)));
        if matches!(step, Step::Push | Step::Poll | Step::Flush) {
            pushed = added;
        }
        out += shown.iter().map(|shown| shown.frames.len()).sum::<usize>();
        if matches!(step, Step::EndOfPoll | Step::Poll | Step::Flush) {
            assert_eq!(out, pushed, "after {step:?} something is still held");
        }
    }
}

/// Returns the time at which each frame was pushed, on the script's clock.
fn push_times(script: &Script) -> Vec<Instant> {
    let mut now = Instant::ZERO;
    let mut times = vec![Instant::ZERO; script.frame_count()];
    let mut waiting = Vec::new();
    for step in script.steps.iter().chain(&[Step::Flush]) {
        match step {
            Step::Frame(index) => waiting.push(*index),
            Step::Push | Step::Poll | Step::Flush => {
                waiting.drain(..).for_each(|index| times[index] = now);
            }
            Step::Advance(time) => now = now + *time,
            Step::EndOfPoll | Step::Load(_) => {}
        }
    }
    times
}
