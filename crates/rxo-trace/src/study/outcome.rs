//! Makes the report: the counts of all engines, summed by point.

use std::collections::HashMap;
use std::net::IpAddr;

use rxo_coalesce::{BypassReason, FlushReason, Histogram};

use super::lane::PollFigures;
use super::point::{Aggregates, CHOSEN, Point, Runner};
use super::{Count, Study, notes};
use crate::advice;
use crate::report::{
    Axis, Checksums, Distribution, Outcome, ReasonCount, Report, SenderOffload, Sweep, Traffic,
    explain,
};

/// Most senders that the report names.
const MAX_SENDERS: usize = 1_024;

/// Makes the report of a study whose engines have delivered everything.
pub(super) fn report(study: Study, partial: Option<String>) -> Report {
    let outcomes: Vec<Outcome> = study
        .points
        .all
        .iter()
        .enumerate()
        .map(|(number, point)| outcome(&study, number, point))
        .collect();
    let start_ns = study.count.first_ns();
    let sweep = study.settings.sweep.as_ref().map(|grid| Sweep {
        axes: grid.axes.iter().map(Axis::from).collect(),
        outcomes: study.points.sweep.iter().map(|place| outcomes[*place].clone()).collect(),
    });
    let traffic = traffic(&study);
    let costs = study.settings.costs;
    let mut advice = match &sweep {
        Some(sweep) => advice::from_sweep(sweep, &outcomes[CHOSEN]),
        None => advice::from_tried(&study.points.attempts, &outcomes, &traffic, costs),
    };
    let better_poll = advice.as_ref().and_then(|advice| advice.better_poll.as_deref());
    let costs = (costs, study.settings.costs_from.as_str());
    let decision = advice::decision(&traffic, &outcomes[CHOSEN], costs, better_poll);
    if decision.is_worth_it == Some(false)
        && let Some(advice) = &mut advice
    {
        advice.linux = None;
    }
    let damaged = study.sources.iter().find_map(|source| source.damage.clone());
    let mut report = Report {
        filter: study.settings.filter.as_ref().map(ToString::to_string),
        decision,
        traffic,
        course: study.chosen.course.report(),
        flows: study
            .chosen
            .flows
            .top(study.settings.top)
            .iter()
            .map(|flow| flow.report(start_ns))
            .collect(),
        sweep,
        advice,
        partial: partial.or(damaged),
        outcome: outcomes.into_iter().nth(CHOSEN).unwrap_or_default(),
        sources: study.sources,
        ..Report::default()
    };
    report.notes = notes::of(&report);
    report
}

fn traffic(study: &Study) -> Traffic {
    let Count { packets, bytes, tcp_packets, data_segments, pure_acks, .. } = study.count;
    let count = &study.count;
    Traffic {
        packets,
        bytes,
        duration_ns: count.duration_ns(),
        started_at_ns: count.started_at.as_nanos(),
        flows: study.chosen.flows.len() as u64,
        tcp_packets,
        data_segments,
        pure_acks,
        aggregatable_pure_acks: count.aggregatable_pure_acks,
        cut_packets: count.cut_packets,
        short_packets: count.short_packets,
        super_packets: count.super_packets,
        unknown_link_packets: count.unknown_link_packets,
        unserved_packets: count.unserved_packets,
        untracked_packets: count.untracked_packets,
        filtered_packets: count.filtered_packets,
        steps_back: study.clock.steps_back(),
        checksums: Checksums {
            mode: study.settings.checksums.name().to_owned(),
            right: count.right,
            wrong: count.wrong,
            unfinished: count.unfinished,
            cut: count.cut_segments,
            sender_offload: senders(study),
        },
    }
}

/// Hosts that left checksums to their card, from the figures of their flows.
fn senders(study: &Study) -> Vec<SenderOffload> {
    let mut counts: HashMap<IpAddr, (u64, u64)> = HashMap::new();
    for flow in study.chosen.flows.iter().filter(|flow| flow.unfinished() > 0) {
        let host = flow.key.source();
        if counts.len() < MAX_SENDERS || counts.contains_key(&host) {
            counts.entry(host).or_default().0 += flow.unfinished();
        }
    }
    if counts.is_empty() {
        return Vec::new();
    }
    for flow in study.chosen.flows.iter() {
        if let Some((_, packets)) = counts.get_mut(&flow.key.source()) {
            *packets += flow.packets;
        }
    }
    let mut senders: Vec<(IpAddr, (u64, u64))> = counts.into_iter().collect();
    senders.sort_by_key(|(host, (unfinished, _))| (std::cmp::Reverse(*unfinished), *host));
    senders
        .into_iter()
        .map(|(host, (unfinished, packets))| SenderOffload {
            address: host.to_string(),
            unfinished,
            packets,
        })
        .collect()
}

/// The counts of one point's engines on all interfaces.
#[derive(Default)]
struct Sums {
    frames: u64,
    deliveries: u64,
    aggregates: u64,
    aggregated_segments: u64,
    singles: u64,
    bypassed: Vec<(&'static str, u64)>,
    flushed: Vec<(&'static str, u64)>,
    hold_ns: Histogram,
    sizes: Aggregates,
    polls: PollFigures,
}

impl Sums {
    fn add(&mut self, runner: &Runner, polls: &PollFigures) {
        let counters = runner.counters();
        self.frames += counters.frames;
        self.deliveries += counters.deliveries;
        self.aggregates += counters.aggregates;
        self.aggregated_segments += counters.aggregated_segments;
        self.singles += counters.singles;
        for reason in BypassReason::ALL {
            add(&mut self.bypassed, reason.name(), counters.bypassed(*reason));
        }
        for reason in FlushReason::ALL {
            add(&mut self.flushed, reason.name(), counters.flushed(*reason));
        }
        self.hold_ns.add(&counters.hold_ns);
        self.sizes.add(&runner.aggregates);
        self.polls.add(polls);
    }
}

fn add(counts: &mut Vec<(&'static str, u64)>, name: &'static str, count: u64) {
    match counts.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => *sum += count,
        None => counts.push((name, count)),
    }
}

fn outcome(study: &Study, number: usize, point: &Point) -> Outcome {
    let mut sums = Sums::default();
    for group in study.lanes.iter().flat_map(|lane| &lane.groups) {
        for runner in group.runners.iter().filter(|runner| runner.point == number) {
            sums.add(runner, &group.figures());
        }
    }
    let outside = outside(&study.count, &mut sums.bypassed);
    let packets = sums.frames + outside;
    let deliveries = sums.deliveries + outside;
    let eliminated = packets - deliveries;
    let segments = sums.aggregated_segments + sums.singles;
    let aggregates = (sums.aggregates + sums.singles).max(1);
    Outcome {
        policy: point.policy.name.to_owned(),
        settings: point.policy.settings().map(|(name, value)| (name.to_owned(), value)).collect(),
        poll: point.poll.to_string(),
        packets,
        deliveries,
        aggregates: sums.aggregates,
        aggregated_segments: sums.aggregated_segments,
        packets_per_aggregate: segments as f64 / aggregates as f64,
        eliminated,
        eliminated_per_10_000: per_10_000(eliminated, packets),
        segments_per_aggregate: Distribution::from(&sums.sizes.segments),
        bytes_per_aggregate: Distribution::from(&sums.sizes.payload_bytes),
        hold_ns: Distribution::from(&sums.hold_ns),
        bypassed: reasons(sums.bypassed),
        flushed: reasons(sums.flushed),
        packets_per_poll: Distribution::from(&sums.polls.packets),
        pause_ns: Distribution::from(&sums.polls.pause_ns),
        ring_overruns: sums.polls.overruns,
    }
}

/// Packets that no engine saw. They pass unchanged, like those that an engine bypasses.
fn outside(count: &Count, bypassed: &mut Vec<(&'static str, u64)>) -> u64 {
    let reasons = [
        (BypassReason::NotIp.name(), count.not_ip_packets),
        (explain::UNKNOWN_LINK, count.unknown_link_packets),
        (explain::UNSERVED, count.unserved_packets),
    ];
    for (name, packets) in reasons {
        add(bypassed, name, packets);
    }
    reasons.iter().map(|(_, packets)| packets).sum()
}

fn per_10_000(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 10_000.0 / whole as f64 }
}

fn reasons(mut counts: Vec<(&'static str, u64)>) -> Vec<ReasonCount> {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    counts.retain(|(_, count)| *count > 0);
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
        .into_iter()
        .map(|(name, count)| {
            let (meaning, remedy) = explain::reason(name);
            ReasonCount {
                reason: name.to_owned(),
                count,
                share: count as f64 / total as f64,
                meaning: meaning.to_owned(),
                remedy: remedy.map(ToOwned::to_owned),
            }
        })
        .collect()
}
