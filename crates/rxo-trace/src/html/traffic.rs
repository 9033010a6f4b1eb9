//! The page section on the captures, their traffic, and the settings of the study.

use super::table::{Cell, Part, Section, Table};
use crate::report::{Outcome, Report, Source, Traffic};
use crate::words::{bytes, count, duration, percent, utc};

/// Returns the section on the captures and their traffic.
pub(super) fn section(report: &Report) -> Section {
    let mut tables = vec![facts(&report.traffic).shown("")];
    tables.extend(tunnels(&report.outcome).map(|table| table.shown("")));
    if report.live.is_none() {
        tables.push(sources(&report.sources));
    }
    if !report.traffic.checksums.sender_offload.is_empty() {
        tables.push(offload(report));
    }
    tables.push(settings(report));
    Section {
        id: "traffic",
        title: "Traffic, files and settings",
        text: Vec::new(),
        code: Vec::new(),
        drawings: Vec::new(),
        tables,
    }
}

fn facts(traffic: &Traffic) -> Table {
    let share = |part: u64, whole: u64| {
        format!("{} ({})", count(part), percent(part as f64 / whole.max(1) as f64))
    };
    let Traffic { packets, tcp_packets, udp_packets, checksums, .. } = traffic;
    let of_all = |part: u64| share(part, *packets);
    let of_tcp = |part: u64| share(part, *tcp_packets);
    let of_both = |part: u64| share(part, tcp_packets + udp_packets);
    let rows = [
        ("packets", count(*packets)),
        ("bytes on the wire", format!("{} ({})", count(traffic.bytes), bytes(traffic.bytes))),
        ("duration", duration(traffic.duration_ns as f64)),
        ("TCP flows, each direction", count(traffic.flows.saturating_sub(traffic.udp_flows))),
        ("UDP flows, each direction", count(traffic.udp_flows)),
        ("TCP packets", of_all(*tcp_packets)),
        ("with data", of_tcp(traffic.data_segments)),
        ("pure ACKs", of_tcp(traffic.pure_acks)),
        ("pure ACKs that could be aggregated", of_tcp(traffic.aggregatable_pure_acks)),
        ("UDP packets", of_all(*udp_packets)),
        ("cut by the capture", of_all(traffic.cut_packets)),
        ("TCP and UDP checksums right", of_both(checksums.right)),
        ("wrong", of_both(checksums.wrong)),
        ("left to the sender's card", of_both(checksums.unfinished)),
        ("not to be known", of_both(checksums.cut)),
        ("checksum mode", checksums.mode.clone()),
    ];
    let odd = ODD.iter().filter(|(_, value)| value(traffic) > 0);
    let odd = odd.map(|(name, value)| (*name, of_all(value(traffic))));
    let rows = rows.into_iter().chain(odd);
    let rows = rows.map(|(name, value)| vec![Cell::text(name), Cell::text(value)]);
    Table::new(&["traffic", ""], rows.collect())
}

/// Returns the table of TCP inside tunnels; `None` if there is no TCP inside tunnels.
fn tunnels(outcome: &Outcome) -> Option<Table> {
    let rows =
        [("TCP segments", outcome.tunnelled), ("deliveries of them", outcome.tunnelled_deliveries)];
    let rows = rows.map(|(name, value)| vec![Cell::text(name), Cell::text(count(value))]);
    (outcome.tunnelled > 0).then(|| Table::new(&["inside VXLAN and Geneve", ""], rows.into()))
}

type Count = fn(&Traffic) -> u64;

/// The counts that get a row only if they are not 0. Each entry has the label of the row, and the function that
/// reads the count.
const ODD: [(&str, Count); 10] = [
    ("shorter than their IP header says", |traffic| traffic.short_packets),
    ("larger than any link's packets", |traffic| traffic.super_packets),
    ("of an unknown link type", |traffic| traffic.unknown_link_packets),
    ("of interfaces without an engine", |traffic| traffic.unserved_packets),
    ("of flows without figures of their own", |traffic| traffic.untracked_packets),
    ("in an encapsulation that cannot be read", |traffic| traffic.sealed_packets),
    ("in the capture twice", |traffic| traffic.duplicate_packets),
    ("sent by the capturing host", |traffic| traffic.sent_packets),
    ("left out by the filter", |traffic| traffic.filtered_packets),
    ("earlier than the packet before them", |traffic| traffic.steps_back),
];

fn sources(sources: &[Source]) -> Part {
    let rows = sources.iter().map(|source| {
        vec![
            Cell::text(&source.name),
            Cell::text(&source.format),
            Cell::number(count(source.packets), source.packets as f64),
            Cell::text(started(source)),
            Cell::text(duration(source.duration_ns as f64)),
            Cell::text(source.damage.as_deref().unwrap_or("read to its end")),
        ]
    });
    let heads = ["file", "format", "#packets", "first packet", "duration", "state"];
    Table::new(&heads, rows.collect()).shown("Files")
}

/// Formats the time at which a capture began; `-` if the capture has no packets.
pub(super) fn started(source: &Source) -> String {
    if source.packets == 0 { "-".to_owned() } else { utc(source.started_at_ns) }
}

fn offload(report: &Report) -> Part {
    let senders = report.traffic.checksums.sender_offload.iter().map(|sender| {
        vec![
            Cell::text(&sender.address),
            Cell::number(count(sender.unfinished), sender.unfinished as f64),
            Cell::number(count(sender.packets), sender.packets as f64),
        ]
    });
    Table::new(&["sender", "#unfinished", "#packets"], senders.collect())
        .shown("Senders whose cards were to fill checksums in")
}

/// The string for the largest 32-bit value of a setting, which means that there is no limit.
const NONE: &str = "4294967295";

fn settings(report: &Report) -> Part {
    let outcome = &report.outcome;
    let filter = report.filter.as_deref().unwrap_or("all packets");
    let first =
        [("policy", outcome.policy.as_str()), ("poll", outcome.poll.as_str()), ("filter", filter)];
    let all = outcome.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let rows = first.into_iter().chain(all).map(|(key, value)| {
        vec![Cell::text(key), Cell::text(if value == NONE { "no limit" } else { value })]
    });
    Table::new(&["setting", "value"], rows.collect()).shown("Settings in force")
}
