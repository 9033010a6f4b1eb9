//! The rules of Juggler: each phase as a story, and the promises for any packets.

use core::time::Duration;

use proptest::prelude::{Just, Strategy as _, proptest};
use rxo_coalesce::rules::{Juggler, Rules as _};
use rxo_frame::Frame;
use rxo_testkit::promise::Observed;
use rxo_testkit::script::{Script, Setup, Step, property, scripts};
use rxo_testkit::{Packet, seg};

use crate::order::late_segments;
use crate::{check_oracle, check_promises, run, under};

const BYTES: u32 = 100;
const INSEQ: Duration = Duration::from_micros(52);
const OFO: Duration = Duration::from_micros(100);
const POLL: Duration = Duration::from_micros(10);

/// Builds segment number `n` of a flow.
fn text(n: u32) -> Packet {
    seg().seq(1_000 + n * BYTES).len(BYTES as usize).id(n as u16)
}

/// Builds a script of polls with these packets, each poll 10 µs after the previous one.
fn polls(polls: Vec<Vec<Packet>>) -> Script {
    let times = (0..).map(|poll| rxo_frame::Instant::ZERO + POLL * poll);
    let frames = polls.iter().zip(times).flat_map(|(packets, arrived_at)| {
        packets.iter().map(move |packet| Frame { arrived_at, ..packet.frame() })
    });
    let mut script = Script::one_poll(Setup::new("linux-gro"), frames.collect());
    script.steps.clear();
    let mut numbers = 0..script.frame_count();
    for packets in polls {
        script.steps.extend(numbers.by_ref().take(packets.len()).map(Step::Frame));
        script.steps.extend([Step::Poll, Step::Advance(POLL)]);
    }
    script
}

/// Builds a number of polls without packets.
fn quiet(polls: usize) -> Vec<Vec<Packet>> {
    vec![Vec::new(); polls]
}

fn deliver(script: &Script) -> Vec<Vec<usize>> {
    frames_of(&observed(script))
}

fn observed(script: &Script) -> Observed {
    let rules = Juggler::new();
    let observed = run::run(rules.clone(), script);
    check_promises(script, &observed, rules.policy().max_hold);
    check_oracle(&rules, script, &observed);
    observed
}

fn frames_of(observed: &Observed) -> Vec<Vec<usize>> {
    observed.deliveries().map(|shown| shown.frames.clone()).collect()
}

#[test]
fn segments_in_disorder_are_one_aggregate_in_order() {
    let first = vec![vec![text(0), text(2), text(1)], vec![text(4)], vec![text(3)]];
    assert_eq!(deliver(&polls([first, quiet(4)].concat())), [vec![0, 2, 1, 4, 3]]);
}

#[test]
fn the_first_bytes_of_a_flow_are_found_while_it_builds_up() {
    let first = vec![vec![text(2)], vec![text(0)], vec![text(1)]];
    assert_eq!(deliver(&polls([first, quiet(3)].concat())), [vec![1, 2, 0]]);
}

#[test]
fn segments_in_sequence_wait_for_the_inseq_timeout() {
    let first = vec![vec![text(0)], vec![text(1)]];
    let observed = observed(&polls([first, quiet(5)].concat()));
    let shown: Vec<_> = observed.deliveries().collect();
    assert_eq!((shown.len(), u128::from(shown[0].at.as_nanos())), (1, INSEQ.as_nanos()));
}

#[test]
fn a_segment_with_psh_ends_the_wait() {
    assert_eq!(observed(&polls(vec![vec![text(1).psh()]])).steps[1].len(), 1);
}

#[test]
fn a_gap_is_waited_for_and_then_everything_is_delivered() {
    let first = vec![vec![text(0).psh()], vec![text(2)]];
    let observed = observed(&polls([first, quiet(12)].concat()));
    let shown: Vec<_> = observed.deliveries().collect();
    assert_eq!(frames_of(&observed), [vec![0], vec![1]]);
    assert_eq!(u128::from(shown[1].at.as_nanos()), OFO.as_nanos());
}

/// During loss recovery, segments after a loss are coalesced as before, and the lost segment is delivered at
/// once when it arrives.
#[test]
fn a_lost_segment_is_delivered_when_it_is_sent_again() {
    let first = vec![vec![text(0).psh()], vec![text(2)]];
    let later = vec![vec![text(3)], vec![text(4), text(1)], vec![text(5).psh()]];
    let script = polls([first, quiet(11), later].concat());
    assert_eq!(deliver(&script), [vec![0], vec![1], vec![4], vec![2, 3, 5]]);
}

#[test]
fn what_was_delivered_is_passed_at_once_when_it_comes_again() {
    let second = vec![text(3), text(0), text(2).psh()];
    let script = polls(vec![vec![text(0), text(1).psh()], second, vec![text(9)]]);
    assert_eq!(deliver(&script)[..3], [vec![0, 1], vec![3], vec![4]]);
}

#[test]
fn a_full_aggregate_does_not_wait() {
    let segment = |n: u32| seg().seq(n * 1448).len(1448).id(n as u16);
    let numbers = [1, 0].into_iter().chain(2..50);
    let observed = observed(&polls(vec![numbers.map(segment).collect()]));
    let shown = &observed.steps[50];
    assert_eq!((shown.len(), shown[0].frames.len(), &shown[0].frames[..2]), (1, 45, &[1, 0][..]));
}

#[test]
fn packets_that_are_no_candidates_keep_their_place() {
    let script = polls(vec![vec![text(1), seg().pure_ack(), text(0)], Vec::new()]);
    assert_eq!(deliver(&script)[..2], [vec![0], vec![1]]);
}

proptest! {
    #![proptest_config(property(200))]

    #[test]
    fn every_promise_holds_for_any_packets(script in scripts(150)) {
        let script = under("linux-gro", script);
        let rules = Juggler::new();
        let observed = run::run(rules.clone(), &script);
        check_promises(&script, &observed, rules.policy().max_hold);
        check_oracle(&rules, &script, &observed);
    }

    /// With few flows, short times and short aggregates, the random scripts reach every limit.
    #[test]
    fn every_promise_holds_at_the_limits(script in scripts(150), flows in 1_u16..4, ofo_us in 0_u64..40) {
        let mut script = under("linux-gro", script);
        script.setup.flows = Some(flows);
        let mut rules = Juggler::new();
        rules.policy.flows = flows;
        rules.policy.max_segments = 5;
        rules.policy.max_hold = Duration::from_micros(60);
        rules.inseq_timeout = Duration::from_micros(ofo_us / 2);
        rules.ofo_timeout = Duration::from_micros(ofo_us);
        let observed = run::run(rules.clone(), &script);
        check_promises(&script, &observed, rules.policy.max_hold);
        check_oracle(&rules, &script, &observed);
    }

    /// Segments of one flow in any order within a poll come out in order.
    #[test]
    fn order_is_restored_within_the_time(order in Just((0..40_u32).collect::<Vec<_>>()).prop_shuffle()) {
        let segments: Vec<Packet> = order.iter().map(|n| text(*n)).collect();
        let halves: Vec<Vec<Packet>> = segments.chunks(20).map(<[Packet]>::to_vec).collect();
        let script = polls([halves, quiet(5)].concat());
        let observed = observed(&script);
        assert_eq!(late_segments(&script, &observed.frame_order()), 0);
        assert_eq!(observed.deliveries().count(), 1);
    }
}
