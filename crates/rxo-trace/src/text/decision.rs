//! The headline of a report as text: packets saved, cores before and after, waiting times, and whether coalescing is
//! worth it.

use rxo_console::numbers::grouped;

use super::units::time;
use crate::projection::Costs;
use crate::report::{Decision, Outcome, Report};

pub(super) fn text(report: &Report) -> String {
    let Report { decision, outcome, .. } = report;
    let lines = [
        ("packets", packets(decision, outcome)),
        ("cores", cores(decision)),
        ("held", format!("at most {} for 99 % of what is held", time(decision.hold_p99_ns))),
        ("decision", decision.sentence.clone()),
        ("costs", costs(decision)),
    ];
    let lines = lines.map(|(name, text)| format!("{name:<11} {text}"));
    lines.join("\n")
}

fn packets(decision: &Decision, outcome: &Outcome) -> String {
    format!(
        "{}{:.1} % fewer for the host's stack: {} deliveries of {} packets, with --poll {}",
        if decision.is_at_most { "at most " } else { "" },
        100.0 * decision.fewer_packets,
        grouped(outcome.deliveries),
        grouped(outcome.packets),
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
    let Costs { packet_ns, byte_ns, coalesce_ns, device_ns } = decision.costs;
    format!(
        "packet={packet_ns}ns,byte={byte_ns}ns,coalesce={coalesce_ns}ns,device={device_ns}ns ({})",
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
