//! The summary of a report as text: the traffic and the effect of the policy, one line for each fact.

use std::time::Duration;

use rxo_console::numbers::{gbit_per_s, grouped, ratio};

use super::units::{bytes, percent, time};
use crate::report::{Checksums, Outcome, Report, Source, Traffic, utc};
use crate::words::{form, plural};

/// The maximum number of captures that are listed. A study on a cluster may read thousands of captures.
const MOST_SOURCES: usize = 20;

pub(super) fn text(report: &Report) -> String {
    let Report { traffic, outcome, .. } = report;
    let listed = report.sources.iter().take(MOST_SOURCES);
    let mut lines: Vec<(&str, String)> =
        listed.map(|source| ("capture", capture(source))).collect();
    if let more @ 1.. = report.sources.len().saturating_sub(MOST_SOURCES) {
        lines.push(("captures", format!("and {} more", grouped(more as u64))));
    }
    if let Some(filter) = &report.filter {
        let left_out = plural(traffic.filtered_packets, "packet");
        lines.push(("filter", format!("{filter}; {left_out} left out")));
    }
    lines.extend([("traffic", packets(traffic)), ("segments", segments(traffic))]);
    lines.extend((traffic.udp_packets > 0).then(|| ("datagrams", datagrams(traffic))));
    lines.extend([
        ("checksums", checksums(&traffic.checksums)),
        ("policy", policy(outcome)),
        ("eliminated", eliminated(outcome)),
    ]);
    lines.extend((outcome.tunnelled > 0).then(|| ("tunnels", tunnels(outcome))));
    lines.extend([("aggregates", aggregates(outcome)), ("hold time", hold(outcome))]);
    let lines: Vec<String> =
        lines.into_iter().map(|(name, text)| format!("{name:<11} {text}")).collect();
    lines.join("\n")
}

fn capture(source: &Source) -> String {
    let Source { name, format, packets, started_at_ns, duration_ns, damage } = source;
    let cut = if damage.is_some() { "; NOT READ TO ITS END" } else { "" };
    let when = match packets {
        0 => String::new(),
        _ => format!(" in {} from {}", time(*duration_ns), utc(*started_at_ns)),
    };
    format!("{name} ({format}): {}{when}{cut}", plural(*packets, "packet"))
}

fn packets(traffic: &Traffic) -> String {
    let Traffic { packets, duration_ns, active_ns, .. } = *traffic;
    let duration = Duration::from_nanos(active_ns);
    format!(
        "{}, {}, {}, {} ({:.3} Gbit/s, {} packets/s)",
        plural(packets, "packet"),
        bytes(traffic.bytes),
        flows(traffic),
        time(duration_ns),
        gbit_per_s(traffic.bytes, duration),
        grouped(ratio(packets as f64, duration.as_secs_f64()) as u64)
    )
}

/// Formats the number of flows by protocol. UDP is mentioned only if there are UDP flows.
fn flows(traffic: &Traffic) -> String {
    let Traffic { flows, udp_flows, .. } = *traffic;
    let tcp = plural(flows.saturating_sub(udp_flows), "TCP flow");
    let udp = plural(udp_flows, "UDP flow");
    match udp_flows {
        0 => tcp,
        _ if udp_flows == flows => udp,
        _ => format!("{tcp}, {udp}"),
    }
}

fn segments(traffic: &Traffic) -> String {
    let Traffic { packets, tcp_packets, data_segments, pure_acks, .. } = *traffic;
    format!(
        "{} TCP: {} with data, {} ({} of all packets; {} of them, {}, could be aggregated \
         with the one before)",
        grouped(tcp_packets),
        grouped(data_segments),
        plural(pure_acks, "pure ACK"),
        percent(pure_acks, packets),
        grouped(traffic.aggregatable_pure_acks),
        percent(traffic.aggregatable_pure_acks, pure_acks)
    )
}

fn datagrams(traffic: &Traffic) -> String {
    let Traffic { packets, udp_packets, .. } = *traffic;
    format!("{} UDP ({} of all packets)", grouped(udp_packets), percent(udp_packets, packets))
}

fn checksums(checksums: &Checksums) -> String {
    let Checksums { mode, right, wrong, unfinished, cut, .. } = checksums;
    if mode == "trust" {
        return "trusted, not looked at".to_owned();
    }
    let mut text = format!("{} right, {} wrong", grouped(*right), grouped(*wrong));
    if *unfinished > 0 {
        text += &format!(", {} left to the sender's card", grouped(*unfinished));
    }
    if *cut > 0 {
        text += &format!(", {} not to be known because the packet is cut", grouped(*cut));
    }
    text
}

fn policy(outcome: &Outcome) -> String {
    let setting = |wanted: &str| {
        let found = outcome.settings.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value.as_str())
    };
    let limit = |wanted: &str, one: &str| match setting(wanted) {
        "1" => format!("1 {one}"),
        value => format!("{value} {one}s"),
    };
    format!(
        "{}, {}, {}, hold {}; poll {} (mean {:.1} packets)",
        outcome.policy,
        limit("max_segments", "segment"),
        limit("flows", "flow"),
        setting("hold"),
        outcome.poll,
        outcome.packets_per_poll.mean
    )
}

fn eliminated(outcome: &Outcome) -> String {
    let Outcome { eliminated, packets, deliveries, eliminated_per_10_000, .. } = *outcome;
    format!(
        "{} of {}, {eliminated_per_10_000:.0} of 10,000; {} {} left, {:.2} \
         packets each",
        grouped(eliminated),
        plural(packets, "packet"),
        plural(deliveries, "delivery"),
        form(deliveries, "is", "are"),
        ratio(packets as f64, deliveries as f64)
    )
}

fn tunnels(outcome: &Outcome) -> String {
    let Outcome { tunnelled, tunnelled_deliveries, .. } = *outcome;
    format!(
        "{} inside VXLAN and Geneve in {}, {:.2} segments each",
        plural(tunnelled, "TCP segment"),
        plural(tunnelled_deliveries, "delivery"),
        ratio(tunnelled as f64, tunnelled_deliveries as f64)
    )
}

fn aggregates(outcome: &Outcome) -> String {
    if outcome.aggregates == 0 {
        return "none".to_owned();
    }
    let (segments, payload) = (&outcome.segments_per_aggregate, &outcome.bytes_per_aggregate);
    format!(
        "{} of two packets or more: {:.1} packets (p50 {}, p99 {}), {} of payload (p50 {}, p99 {})",
        grouped(outcome.aggregates),
        segments.mean,
        segments.p50,
        segments.p99,
        bytes(payload.mean as u64),
        bytes(payload.p50),
        bytes(payload.p99)
    )
}

fn hold(outcome: &Outcome) -> String {
    let hold = &outcome.hold_ns;
    if hold.count == 0 {
        return "nothing was held".to_owned();
    }
    format!("p50 {}, p99 {}, most {}", time(hold.p50), time(hold.p99), time(hold.max))
}
