//! The verdict as text.

use rxo_trace::verify::{Difference, Verdict};

use crate::numbers::grouped;

/// The whole verdict.
pub(super) fn text([a, b]: [&str; 2], verdict: &Verdict, is_partial: bool) -> String {
    let mut lines: Vec<String> = verdict.differences.iter().map(difference).collect();
    let says = if verdict.equal { "say the same" } else { "differ" };
    lines.push(format!(
        "{a} ({} packets) and {b} ({} packets) {says}: {} flows, {} bytes of payload found equal.",
        grouped(verdict.packets_a),
        grouped(verdict.packets_b),
        grouped(verdict.flows),
        grouped(verdict.equal_payload_bytes),
    ));
    if verdict.forgotten_segments > 0 {
        lines.push(format!(
            "{} segments end inside a packet of the other capture, which does not say their ACK, \
             window, options and flags (no note beside it): those were not compared.",
            grouped(verdict.forgotten_segments)
        ));
    }
    if is_partial {
        lines.push("Not all of both could be read: this holds as far as they were.".to_owned());
    }
    if verdict.stopped {
        lines.push("Enough flows differ: the rest was not compared.".to_owned());
    }
    if verdict.forgotten_flows > 0 {
        lines.push(format!(
            "There are too many flows to remember: {} were forgotten while equal, and offsets of \
             theirs count from there.",
            grouped(verdict.forgotten_flows)
        ));
    }
    lines.join("\n")
}

fn difference(found: &Difference) -> String {
    let Difference { flow, interface, kind, stream_offset, packet_a, packet_b, a, b } = found;
    let interface =
        if *interface == 0 { String::new() } else { format!(" on interface {interface}") };
    format!(
        "{flow}{interface}: {} at byte {} of the stream: a {}: {a}; b {}: {b}",
        kind.name(),
        grouped(*stream_offset),
        packet(*packet_a),
        packet(*packet_b),
    )
}

fn packet(number: Option<u64>) -> String {
    number.map_or("has no such packet".to_owned(), |number| format!("packet {number}"))
}
