//! Tests that a study reports the same as an engine that is driven by hand, packet by packet.

use std::collections::{BTreeMap, VecDeque};

use rxo_capture::{Interface, Record, SharedBytes};
use rxo_coalesce::{
    BypassReason, Config, Counters, Deliveries, Delivery, Engine, FlushReason, Histogram,
};
use rxo_frame::{Duration, Frame, Instant};
use rxo_testkit::Workload;
use rxo_trace::report::{Distribution, Outcome, ReasonCount};
use rxo_trace::study::{Point, PollRule};

use crate::captures;
use crate::traffic::{SEED, ethernet, generated, point, settings, study};

const POLLS: [&str; 5] = ["packets:64", "packets:7", "time:50us", "host:2us", "host:300ns"];

/// A poll: the indices of its records, and its time.
type Poll = (Vec<usize>, Instant);

/// Returns the polls for these arrivals, computed from the whole list.
fn polls(rule: PollRule, arrivals: &[Instant]) -> Vec<Poll> {
    match rule {
        PollRule::Packets(count) => {
            let all: Vec<usize> = (0..arrivals.len()).collect();
            let chunks = all.chunks(count as usize);
            chunks.map(|chunk| (chunk.to_vec(), arrivals[*chunk.last().unwrap()])).collect()
        }
        PollRule::Time(time) => by_time(time, arrivals),
        PollRule::Host(cost) => by_host(cost, arrivals),
    }
}

fn by_time(time: Duration, arrivals: &[Instant]) -> Vec<Poll> {
    let mut polls: Vec<Poll> = Vec::new();
    for (index, at) in arrivals.iter().enumerate() {
        match polls.last_mut() {
            Some((members, end)) if *at < *end => members.push(index),
            _ => polls.push((vec![index], *at + time)),
        }
    }
    polls
}

fn by_host(cost: Duration, arrivals: &[Instant]) -> Vec<Poll> {
    let mut left: VecDeque<usize> = (0..arrivals.len()).collect();
    let (mut polls, mut free_at) = (Vec::new(), Instant::ZERO);
    while let Some(first) = left.front().copied() {
        if arrivals[first] >= free_at {
            // The host was idle when the packet arrived, so it is polled alone.
            free_at = arrivals[first] + cost;
            polls.push((vec![left.pop_front().unwrap()], arrivals[first]));
        } else {
            let there = left.iter().take_while(|index| arrivals[**index] <= free_at).count();
            let members: Vec<usize> = left.drain(..there.min(64)).collect();
            let at = free_at;
            free_at = free_at + cost * members.len() as u32;
            polls.push((members, at));
        }
    }
    polls
}

#[derive(Default)]
struct Sizes {
    segments: Histogram,
    payload_bytes: Histogram,
}

impl Sizes {
    fn note(&mut self, deliveries: &Deliveries<'_, SharedBytes>) {
        for delivery in deliveries.iter() {
            if let Delivery::Aggregate(aggregate) = delivery {
                self.segments.record(aggregate.segment_count() as u64);
                self.payload_bytes.record(aggregate.payload_bytes().into());
            }
        }
    }
}

/// Drives an engine over the records and returns its counts.
fn drive(point: &Point, interface: &Interface, records: &[Record]) -> (Counters, Sizes) {
    let networks: Vec<_> =
        records.iter().map(|record| interface.link.network(&record.bytes).unwrap()).collect();
    // The host's sink segments UDP.
    let mut policy = point.policy.with_udp_if(true);
    if let PollRule::Time(wait) = point.poll {
        // Holds count from the interrupt, and no policy here holds for a time of its own.
        policy.max_hold += wait;
    }
    let config = Config { link: networks[0].link, ..Config::new(policy, SEED) };
    let mut engine = Engine::new(config).unwrap();
    let mut sizes = Sizes::default();
    // A host's clock does not go back, but the clock of one capture goes back slightly.
    let mut now = Instant::ZERO;
    let arrivals: Vec<Instant> = records
        .iter()
        .map(|record| {
            now = now.max(record.at);
            now
        })
        .collect();
    let mut end = *arrivals.last().unwrap();
    for (members, at) in polls(point.poll, &arrivals) {
        while let Some(deadline) = engine.poll_at().filter(|deadline| *deadline <= at) {
            engine.on_timeout(deadline, |deliveries| sizes.note(&deliveries));
        }
        let mut batch: Vec<Frame<SharedBytes>> = members
            .iter()
            .map(|index| Frame::new(networks[*index].packet.clone(), arrivals[*index]))
            .collect();
        engine.poll(&mut batch, at, |deliveries| sizes.note(&deliveries));
        end = end.max(at);
    }
    while let Some(deadline) = engine.poll_at() {
        engine.on_timeout(deadline, |deliveries| sizes.note(&deliveries));
    }
    engine.flush(end, |deliveries| sizes.note(&deliveries));
    (engine.counters().clone(), sizes)
}

fn counts(reasons: &[ReasonCount]) -> BTreeMap<&str, u64> {
    reasons.iter().map(|reason| (reason.reason.as_str(), reason.count)).collect()
}

fn nonzero<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> BTreeMap<&'a str, u64> {
    counts.filter(|(_, count)| *count > 0).collect()
}

fn compare(outcome: &Outcome, (counters, sizes): &(Counters, Sizes), what: &str) {
    assert_eq!(outcome.packets, counters.frames, "{what}");
    assert_eq!(outcome.deliveries, counters.deliveries, "{what}");
    assert_eq!(outcome.aggregates, counters.aggregates, "{what}");
    assert_eq!(outcome.aggregated_segments, counters.aggregated_segments, "{what}");
    let flushed = FlushReason::ALL.iter().map(|reason| (reason.name(), counters.flushed(*reason)));
    assert_eq!(counts(&outcome.flushed), nonzero(flushed), "{what}");
    let bypassed =
        BypassReason::ALL.iter().map(|reason| (reason.name(), counters.bypassed(*reason)));
    assert_eq!(counts(&outcome.bypassed), nonzero(bypassed), "{what}");
    for (ours, by_hand) in [
        (&outcome.hold_ns, &counters.hold_ns),
        (&outcome.segments_per_aggregate, &sizes.segments),
        (&outcome.bytes_per_aggregate, &sizes.payload_bytes),
    ] {
        let by_hand = Distribution::from(by_hand);
        assert_eq!(ours.every_5_percent, by_hand.every_5_percent, "{what}");
        assert_eq!((ours.count, ours.max), (by_hand.count, by_hand.max), "{what}");
        assert!((ours.mean - by_hand.mean).abs() < 1e-9, "{what}: {} {}", ours.mean, by_hand.mean);
    }
}

fn agrees(records: &[Record], interfaces: &[Interface], policy: &str, poll: &str, what: &str) {
    let point = point(policy, poll);
    let report = study(settings(point), interfaces, records);
    let by_hand = drive(&point, &interfaces[0], records);
    compare(&report.outcome, &by_hand, &format!("{what}, {policy}, {poll}"));
    let flows: u64 = report.flows.iter().map(|flow| flow.packets - flow.deliveries).sum();
    if report.traffic.flows <= 10 {
        assert_eq!(flows, report.outcome.eliminated, "{what}: the flows' sum");
    }
}

#[test]
fn every_policy_under_every_rule_for_polls_does_what_the_engine_does() {
    for kind in [Workload::Mixed, Workload::W6, Workload::W7, Workload::BadCase] {
        let records = generated(kind, 3_000);
        for policy in rxo_coalesce::Policy::all() {
            for poll in POLLS {
                agrees(&records, &ethernet(), policy.name, poll, kind.name());
            }
        }
    }
}

#[test]
fn real_captures_come_out_as_by_hand() {
    for captured in captures::all() {
        let same = |record: &Record| record.interface == captured.records[0].interface;
        assert!(captured.records.iter().all(same), "{}: one interface only", captured.name);
        for (policy, poll) in
            [("linux-gro", "packets:64"), ("remember", "time:100us"), ("rsc-2006", "host:1us")]
        {
            agrees(&captured.records, &captured.interfaces, policy, poll, &captured.name);
        }
    }
}

#[test]
fn all_points_of_a_sweep_are_what_each_is_alone() {
    let records = generated(Workload::Mixed, 4_000);
    let chosen = point("remember", "packets:64");
    let axes = ["max_segments=2,8,64", "poll=packets:16,time:20us,host:1us"];
    let axes = axes.iter().map(|text| text.parse().unwrap()).collect();
    let grid = rxo_trace::sweep::Grid::new(&chosen, axes).unwrap();
    let points = grid.points.clone();
    let swept = rxo_trace::study::Settings { sweep: Some(grid), ..settings(chosen) };
    let sweep = study(swept, &ethernet(), &records).sweep.unwrap();
    assert_eq!(sweep.outcomes.len(), 9);
    for (outcome, point) in sweep.outcomes.iter().zip(points) {
        let alone = study(settings(point), &ethernet(), &records).outcome;
        assert_eq!(format!("{outcome:?}"), format!("{alone:?}"));
    }
}

/// Points that differ from the chosen one only in a limit share its engine until a poll reaches the limit.
#[test]
fn limits_that_are_reached_late_or_never_give_what_each_is_alone() {
    let chosen = point("linux-gro", "time:20us");
    for kind in [Workload::W3, Workload::Mixed, Workload::U1, Workload::ManyFlows(100)] {
        let records = generated(kind, 3_000);
        for axis in ["flows=1,2,4,16,64,4096", "max_segments=1,2,16,64"] {
            let grid = rxo_trace::sweep::Grid::new(&chosen, vec![axis.parse().unwrap()]).unwrap();
            let points = grid.points.clone();
            let swept = rxo_trace::study::Settings { sweep: Some(grid), ..settings(chosen) };
            let sweep = study(swept, &ethernet(), &records).sweep.unwrap();
            for (outcome, point) in sweep.outcomes.iter().zip(points) {
                let alone = study(settings(point), &ethernet(), &records).outcome;
                assert_eq!(format!("{outcome:?}"), format!("{alone:?}"), "{kind:?}, {axis}");
            }
        }
    }
}

#[test]
fn batches_of_records_do_not_matter() {
    let records = generated(Workload::Mixed, 2_000);
    let point = point("xen-delayed", "time:30us");
    let whole = study(settings(point), &ethernet(), &records);
    let mut study = rxo_trace::study::Study::new(settings(point)).unwrap();
    study.begin_source("generated");
    for record in &records {
        study.take(&ethernet(), &mut vec![record.clone()]);
    }
    study.end_source("none", None);
    assert_eq!(format!("{:?}", study.finish(None)), format!("{whole:?}"));
}
