//! The result of comparing two captures, as text.

use rxo_trace::verify::{ComparisonResult, Difference};

use crate::numbers::grouped;

/// Formats the whole result of comparing the captures named `a` and `b`.
pub(super) fn text([a, b]: [&str; 2], verdict: &ComparisonResult, is_partial: bool) -> String {
    let found = verdict.differences.iter().chain(&verdict.undecided);
    let mut lines: Vec<String> = found.map(difference).collect();
    let says = match (verdict.equal, verdict.differences.is_empty()) {
        (true, _) => "say the same",
        (false, true) => "have the same bytes, in datagrams whose lengths are not known",
        (false, false) => "differ",
    };
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

/// Returns the message that explains why it is undecided whether the captures are equal.
pub(super) fn undecided([name_a, name_b]: [&str; 2], found: &Difference) -> String {
    let Difference { flow, packet_a, packet_b, .. } = found;
    format!(
        "cannot tell whether {name_a} and {name_b} have the same datagrams of {flow}: {} of {name_a} and {} of \
         {name_b} may be several each, and neither has a note of them; compare captures that were taken before \
         coalescing, or what `rxo coalesce` made of such",
        packet(*packet_a),
        packet(*packet_b),
    )
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
