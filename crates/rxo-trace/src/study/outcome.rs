//! Creates the report of a study from the counts of all engines, summed by point.

use std::collections::HashMap;
use std::net::IpAddr;

use rxo_coalesce::{BypassReason, FlushReason};

use super::flows::Flows;
use super::part::{Part, PointSums, Sums, Terms};
use super::point::{CHOSEN, CHOSEN_SLOT, Point, slot};
use super::points::Points;
use super::receivers::{Received, Receivers};
use super::{Count, LIMITS, Settings, notes};
use crate::advice::{self, Attempts, Delivered};
use crate::projection::Costs;
use crate::report::{
    Checksums, Distribution, Encapsulation, Outcome, Protocol, ReasonCount, Receiver, Report,
    SenderOffload, Sweep, Traffic, explain,
};

/// The maximum number of senders that the report names.
const MAX_SENDERS: usize = 1_024;

/// Returns the report on `part`, which was counted with `settings`.
pub(super) fn report(part: &Part, settings: &Settings, terms: &Terms) -> Report {
    let sums = &part.sums;
    let points = Points::of(settings);
    let tried = points.all.iter().zip(&sums.points);
    let outcomes: Vec<Outcome> =
        tried.map(|(point, counts)| outcome(&sums.count, counts, point)).collect();
    let start_ns = sums.started_at_ns;
    let sweep = settings.sweep.as_ref().map(|grid| Sweep {
        axes: grid.axes.clone(),
        outcomes: points.sweep.iter().map(|place| outcomes[*place].clone()).collect(),
    });
    let traffic = traffic(sums, settings);
    let costs = terms.costs;
    let listed = listed(sums);
    let receivers = receivers(&listed, &traffic, costs);
    let mut advice = match &sweep {
        Some(sweep) => advice::from_sweep(sweep, &outcomes[CHOSEN]),
        None => {
            let first = listed.listed.first();
            let first = first.filter(|_| advice::is_for_first(&receivers, &outcomes[CHOSEN]));
            let delivered = delivered(&points, &outcomes, traffic.bytes, first);
            let limited = limited(&sums.count, &points.attempts, &outcomes[CHOSEN]);
            let counts = (&outcomes[..], &limited[..]);
            advice::from_tried(&points.attempts, counts, &delivered, (&traffic, costs))
        }
    };
    let better_poll = advice.as_ref().and_then(|advice| advice.better_poll.as_deref());
    let costs = (costs, terms.costs_from.as_str());
    let is_untagged = sums.flows.iter().all(|flow| !flow.is_tagged());
    let receivers = (receivers, is_untagged);
    let decision = advice::decision(&traffic, &outcomes[CHOSEN], costs, better_poll, receivers);
    if decision.is_worth_it != Some(true)
        && let Some(advice) = &mut advice
    {
        advice.linux = None;
    }
    let top = sums.flows.top(terms.top);
    let names = sums.captures.names();
    let mut report = Report {
        filter: settings.filter.clone(),
        decision,
        traffic,
        course: sums.course.report(),
        flows: top.iter().map(|flow| flow.report(start_ns, &names)).collect(),
        sweep,
        advice,
        partial: part.partial(),
        outcome: outcomes[CHOSEN].clone(),
        tried: outcomes,
        sources: sums.captures.sources().cloned().collect(),
        ..Report::default()
    };
    report.notes = notes::of(&report);
    report
}

fn traffic(sums: &Sums, settings: &Settings) -> Traffic {
    let count = &sums.count;
    let udp_flows = sums.flows.iter().filter(|flow| flow.protocol == Protocol::Udp).count();
    let started_at_ns = if count.packets > 0 { sums.started_at_ns } else { 0 };
    Traffic {
        packets: count.packets,
        bytes: count.bytes,
        duration_ns: count.duration_ns,
        active_ns: count.active_ns,
        pauses: count.pauses,
        simultaneous_packets: count.simultaneous_packets,
        close_packets: count.close_packets,
        started_at_ns,
        flows: sums.flows.len() as u64,
        udp_flows: udp_flows as u64,
        tcp_packets: count.tcp_packets,
        data_segments: count.data_segments,
        pure_acks: count.pure_acks,
        aggregatable_pure_acks: count.aggregatable_pure_acks,
        udp_packets: count.udp_packets,
        cut_packets: count.cut_packets,
        short_packets: count.short_packets,
        super_packets: count.super_packets,
        super_bytes: count.super_bytes,
        merged_packets: count.merged_packets,
        merged_bytes: count.merged_bytes,
        tcp_payload_bytes: count.tcp_payload_bytes,
        missing_bytes: count.missing_bytes.saturating_sub(count.late_bytes),
        unknown_link_packets: count.unknown_link_packets,
        unserved_packets: count.unserved_packets,
        untracked_packets: count.untracked_packets,
        filtered_packets: count.filtered_packets,
        sent_packets: count.sent_packets,
        duplicate_packets: count.duplicate_packets,
        are_duplicates_left_out: settings.dedup,
        encapsulations: encapsulations(count),
        sealed_packets: count.sealed_packets,
        steps_back: count.steps_back,
        clock_sets: count.clock_sets,
        checksums: Checksums {
            mode: settings.checksums.name().to_owned(),
            right: count.right,
            wrong: count.wrong,
            unfinished: count.unfinished,
            cut: count.cut_segments,
            sender_offload: senders(&sums.flows),
        },
    }
}

/// Returns the receiving addresses. There are none if most records state whether the host sent their packets, because
/// then all counted packets were received by the host; and none if too many flows have no figures.
fn listed(sums: &Sums) -> Receivers {
    let count = &sums.count;
    if count.marked_packets > count.packets / 2 || count.untracked_packets > count.packets / 20 {
        return Receivers::default();
    }
    Receivers::of(&sums.flows)
}

/// Returns the receiving addresses with the effect of the chosen policy.
fn receivers(receivers: &Receivers, traffic: &Traffic, costs: Costs) -> Vec<Receiver> {
    let report = |one: &Received| Receiver {
        address: one.name(),
        is_host: receivers.host == Some(one.address),
        ..advice::receiver(traffic, costs, one.delivered(CHOSEN_SLOT))
    };
    receivers.listed.iter().map(report).collect()
}

/// Returns the packets that the decision is for, under each poll rule that was tried: those of the receiver `first`, or
/// all packets of the capture, which have `bytes` bytes.
fn delivered(
    points: &Points,
    outcomes: &[Outcome],
    bytes: u64,
    first: Option<&Received>,
) -> Vec<Delivered> {
    let all = |outcome: &Outcome| {
        let Outcome { packets, deliveries, .. } = *outcome;
        Delivered { packets, bytes, deliveries }
    };
    let under = |place: &usize| match first {
        Some(first) => slot(&points.all, *place).map(|slot| first.delivered(slot)),
        None => outcomes.get(*place).map(all),
    };
    points.attempts.polls.iter().filter_map(under).collect()
}

/// Returns the encapsulations of the traffic, beginning with the encapsulation that has the most packets.
fn encapsulations(count: &Count) -> Vec<Encapsulation> {
    let mut all: Vec<Encapsulation> = count
        .encapsulations()
        .into_iter()
        .filter(|(_, packets)| *packets > 0)
        .map(|(name, packets)| Encapsulation { name: name.to_owned(), packets })
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.packets));
    all
}

/// Returns the hosts that left checksums to their network cards: the source addresses of flows with unfinished
/// checksums.
fn senders(flows: &Flows) -> Vec<SenderOffload> {
    let mut counts: HashMap<IpAddr, (u64, u64)> = HashMap::new();
    for flow in flows.iter().filter(|flow| flow.unfinished() > 0) {
        let host = flow.key.source();
        if counts.len() < MAX_SENDERS || counts.contains_key(&host) {
            let unfinished = &mut counts.entry(host).or_default().0;
            *unfinished = unfinished.saturating_add(flow.unfinished());
        }
    }
    if counts.is_empty() {
        return Vec::new();
    }
    for flow in flows.iter() {
        if let Some((_, packets)) = counts.get_mut(&flow.key.source()) {
            *packets = packets.saturating_add(flow.packets);
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

/// Returns the outcome of a point, which includes the packets that reached no engine.
fn outcome(count: &Count, sums: &PointSums, point: &Point) -> Outcome {
    let bypassed = BypassReason::ALL.iter().map(|reason| reason.name()).zip(sums.bypassed.clone());
    let flushed = FlushReason::ALL.iter().map(|reason| reason.name()).zip(sums.flushed.clone());
    let mut bypassed: Vec<(&'static str, u64)> = bypassed.collect();
    let outside = outside(count, &mut bypassed);
    let packets = sums.frames + outside;
    let deliveries = sums.deliveries + outside;
    let eliminated = packets.saturating_sub(deliveries);
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
        tunnelled: sums.tunnelled,
        tunnelled_deliveries: sums.tunnelled_deliveries,
        packets_per_aggregate: segments as f64 / aggregates as f64,
        eliminated,
        eliminated_per_10_000: per_10_000(eliminated, packets),
        eliminated_error: sums.error_bound.min(packets),
        segments_per_aggregate: Distribution::from(&sums.sizes.segments),
        bytes_per_aggregate: Distribution::from(&sums.sizes.payload_bytes),
        hold_ns: Distribution::from(&sums.hold_ns),
        bypassed: reasons(bypassed),
        flushed: reasons(flushed.collect()),
        packets_per_poll: Distribution::from(&sums.polls.packets),
        pause_ns: Distribution::from(&sums.polls.pause_ns),
        ring_overruns: sums.overruns,
    }
}

/// Returns the outcomes for other limits on segments per aggregate, which were computed from the runs of the
/// chosen engine. In these outcomes, only the number of deliveries is known.
fn limited(count: &Count, attempts: &Attempts, chosen: &Outcome) -> Vec<Outcome> {
    let runs = [count.limit_1, count.limit_4, count.limit_16, count.limit_64];
    let is_own = |value: &String| {
        chosen.settings.iter().any(|(name, own)| name == "max_segments" && own == value)
    };
    let at_limit = |value: &String| {
        let place = LIMITS.iter().position(|limit| limit.to_string() == *value);
        let Some(deliveries) = place.filter(|_| !is_own(value)).map(|place| runs[place]) else {
            return chosen.clone();
        };
        let deliveries =
            chosen.deliveries.saturating_add(deliveries).saturating_sub(count.limit_own);
        let eliminated = chosen.packets.saturating_sub(deliveries);
        let eliminated_per_10_000 = per_10_000(eliminated, chosen.packets);
        Outcome { deliveries, eliminated, eliminated_per_10_000, ..Outcome::default() }
    };
    attempts.limits.iter().flat_map(|axis| &axis.values).map(at_limit).collect()
}

/// Returns the number of packets that no engine received, and adds them to `bypassed`. These packets are
/// delivered unchanged, like packets that an engine bypasses.
fn outside(count: &Count, bypassed: &mut Vec<(&'static str, u64)>) -> u64 {
    let reasons = [
        (BypassReason::NotIp.name(), count.not_ip_packets),
        (explain::UNKNOWN_LINK, count.unknown_link_packets),
        (explain::UNSERVED, count.unserved_packets),
    ];
    for (name, packets) in reasons {
        match bypassed.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += packets,
            None => bypassed.push((name, packets)),
        }
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
