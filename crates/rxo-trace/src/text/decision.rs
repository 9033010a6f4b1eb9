//! The headline of a report as text: eliminated packets, cores without and with coalescing, waiting times, and
//! the decision whether coalescing is worth it.

use super::live;
use super::units::time;
use crate::projection::Costs;
use crate::report::{Decision, Receiver, Report, TriedPoll};
use crate::words::plural;

pub(super) fn text(report: &Report) -> String {
    let Report { decision, .. } = report;
    let mut lines = vec![
        ("packets", packets(decision)),
        ("cores", cores(decision)),
        ("held", format!("at most {} for 99 % of what is held", time(decision.hold_p99_ns))),
        ("decision", decision.sentence.clone()),
        ("costs", costs(decision)),
    ];
    let polls = report.advice.iter().flat_map(|advice| &advice.polls);
    lines.extend(polls.filter(|poll| poll.is_today).map(|poll| ("today", today(poll))));
    if let Some(seen) = &report.live {
        lines.extend([("today", live::today(seen)), ("watched", live::watched(seen))]);
    }
    if decision.receivers.len() > 1 {
        lines.extend(decision.receivers.iter().map(|receiver| ("receiver", one(receiver))));
    }
    let lines = lines.into_iter().map(|(name, text)| format!("{name:<11} {text}"));
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

/// Formats the result of the poll rule that most hosts use today, for comparison.
fn today(poll: &TriedPoll) -> String {
    let cores = poll.cores_with.map_or("an unknown number of".to_owned(), three_digits);
    format!(
        "{:.1} % fewer and {cores} cores: your host with the kernel's own GRO, without a wait (--poll {})",
        100.0 * poll.fewer_packets,
        poll.poll
    )
}

/// Formats a receiving address and the effect of coalescing on it.
fn one(receiver: &Receiver) -> String {
    let Receiver { address, packets, fewer_packets, .. } = receiver;
    let cores = match (receiver.cores_without, receiver.cores_with) {
        (Some(without), Some(with)) => {
            format!(
                ", {} cores without coalescing, {} with it",
                three_digits(without),
                three_digits(with)
            )
        }
        _ => String::new(),
    };
    let host = if receiver.is_host { ", the capturing host" } else { "" };
    format!(
        "{address}{host}: {}, {:.1} % fewer{cores}",
        plural(*packets, "packet"),
        100.0 * fewer_packets
    )
}

fn packets(decision: &Decision) -> String {
    format!(
        "{}{:.1} % fewer for the host's stack: {} of {}, with --poll {}",
        if decision.is_hypothetical { "no prediction: " } else { "" },
        100.0 * decision.fewer_packets,
        plural(decision.deliveries, "delivery"),
        plural(decision.packets, "packet"),
        decision.poll
    )
}

fn cores(decision: &Decision) -> String {
    let Decision { cores_without: Some(without), cores_with: Some(with), .. } = *decision else {
        return "unknown: the capture has no rate".to_owned();
    };
    format!(
        "{} busy with receiving at this rate without coalescing, {} with it",
        three_digits(without),
        three_digits(with)
    )
}

fn costs(decision: &Decision) -> String {
    let Costs { packet_ns, byte_ns, coalesce_ns, device_ns, wake_ns, cold_ns } = decision.costs;
    let waking = [("wake", wake_ns), ("cold", cold_ns)].into_iter().filter(|&(_, ns)| ns > 0.0);
    let waking: String = waking.map(|(name, ns)| format!(",{name}={ns}ns")).collect();
    format!(
        "packet={packet_ns}ns,byte={byte_ns}ns,coalesce={coalesce_ns}ns,device={device_ns}ns{waking} ({})",
        decision.costs_from
    )
}

/// Formats a number of cores with three significant digits, from thousands to small fractions.
pub(super) fn three_digits(cores: f64) -> String {
    match cores {
        _ if cores >= 100.0 => format!("{cores:.0}"),
        _ if cores >= 10.0 => format!("{cores:.1}"),
        _ if cores >= 1.0 => format!("{cores:.2}"),
        _ if cores >= 0.01 => format!("{cores:.3}"),
        _ if cores >= 0.000_1 => format!("{cores:.5}"),
        _ => "less than 0.0001".to_owned(),
    }
}
