//! Finds the first difference, in header order, that keeps a segment from joining the held segments of its
//! flow.

use rxo_frame::Frame;

use super::options;
use super::refuse::{AE, ECE, FIN, PSH, only_timestamp};
use crate::naive::Segment;
use crate::rules::{Change, Options, Psh, Rules};

/// Returns the reason why `next` may not join `held`; `None` if it may. All must be segments of one flow with
/// payload that were not refused.
pub(super) fn difference<B>(
    held: &[(&Frame<B>, &Segment)],
    frame: &Frame<B>,
    next: &Segment,
    rules: &Rules,
) -> Option<&'static str> {
    let (first, last) = (held[0].1, held[held.len() - 1].1);
    let payload: usize = held.iter().map(|(_, segment)| segment.payload.len()).sum();
    let merged = first.payload_at - first.network_at + payload + next.payload.len();
    let expected = last.seq.wrapping_add(last.payload.len() as u32);
    let rest = [
        ("link_changed", link(first) != link(next)),
        ("options_changed", !options_stay(&last.options, &next.options)),
        ("checksum_status_changed", frame.checksum.is_partial() != held[0].0.checksum.is_partial()),
        ("long_segment", !rules.any_size && next.payload.len() > first.payload.len()),
        (
            "byte_limit",
            merged > rules.max_bytes || payload + next.payload.len() > rules.max_payload,
        ),
    ];
    let broken = |(name, is_broken): &(&'static str, bool)| is_broken.then_some(*name);
    (next.seq != expected)
        .then_some("out_of_sequence")
        .or_else(|| ip_header(first, next))
        .or_else(|| (!next.v6 && !rules.any_id && !id_follows(held, next)).then_some("ip_id"))
        .or_else(|| tcp_header(last, next, rules))
        .or_else(|| rest.iter().find_map(broken))
}

/// Returns the reason why the datagram `next` may not join `held`; `None` if it may. All must be datagrams of
/// one flow that were not refused.
pub(super) fn datagram_difference<B>(
    held: &[(&Frame<B>, &Segment)],
    frame: &Frame<B>,
    next: &Segment,
    rules: &Rules,
) -> Option<&'static str> {
    let first = held[0].1;
    let payload: usize = held.iter().map(|(_, segment)| segment.payload.len()).sum();
    let payload = payload + next.payload.len();
    let merged = first.payload_at - first.network_at + payload;
    let is_partial = (frame.checksum.is_partial(), held[0].0.checksum.is_partial());
    let rest = [
        ("ip_id", !next.v6 && !id_follows(held, next)),
        ("link_changed", link(first) != link(next)),
        ("checksum_status_changed", is_partial.0 != is_partial.1),
        ("long_segment", next.payload.len() > first.payload.len()),
        ("byte_limit", merged > rules.max_bytes || payload > rules.max_payload),
    ];
    let broken = |(name, is_broken): &(&'static str, bool)| is_broken.then_some(*name);
    ip_header(first, next).or_else(|| rest.iter().find_map(broken))
}

/// Returns the reason why the aggregate of datagrams `held` is complete; `None` if more can be appended.
pub(super) fn closing_datagrams(held: &[&Segment], rules: &Rules) -> Option<&'static str> {
    let (first, last) = (held[0], held[held.len() - 1]);
    if last.payload.len() < first.payload.len() {
        return Some("short_segment");
    }
    (held.len() >= rules.max_segments.min(MOST_DATAGRAMS)).then_some("segment_limit")
}

/// Most datagrams in an aggregate, the limit of a kernel's segmentation.
pub(crate) const MOST_DATAGRAMS: usize = 64;

/// Returns the name of the first field of the IP header that differs, except the ID; `None` if all agree.
pub(super) fn ip_header(one: &Segment, other: &Segment) -> Option<&'static str> {
    [
        ("traffic_class_changed", one.traffic_class != other.traffic_class),
        ("hop_limit_changed", one.hop_limit != other.hop_limit),
        ("df_changed", one.dont_fragment != other.dont_fragment),
        ("flow_label_changed", one.flow_label != other.flow_label),
    ]
    .into_iter()
    .find_map(|(name, differs)| differs.then_some(name))
}

/// Returns everything around the fields of the IP header, for comparison.
pub(super) fn link(segment: &Segment) -> impl PartialEq + use<'_> {
    (&segment.link, segment.device_tag, segment.v6, &segment.between)
}

/// Returns `true` if the ID continues as the second segment established: constant (only with DF) or counting.
fn id_follows<B>(held: &[(&Frame<B>, &Segment)], next: &Segment) -> bool {
    let ids: Vec<u16> = held.iter().map(|(_, segment)| segment.id).chain([next.id]).collect();
    are_fixed(&ids, next.dont_fragment).is_some()
}

/// Returns `true` if all IDs are equal and DF is set, `false` if each is one more than the previous, and `None` if they
/// have neither pattern.
pub(crate) fn are_fixed(ids: &[u16], has_df: bool) -> Option<bool> {
    let fixed = ids.windows(2).all(|pair| pair[1] == pair[0]) && has_df;
    let counts = ids.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1));
    (fixed || counts).then_some(fixed)
}

fn tcp_header(last: &Segment, next: &Segment, rules: &Rules) -> Option<&'static str> {
    let time = |segment: &Segment| only_timestamp(&segment.options);
    let values = (time(last), time(next));
    let went_back = match &values {
        (Some(last), Some(next)) => !follows(value(last), value(next), Change::Forward),
        _ => false,
    };
    let timestamp = match rules.options {
        Options::Identical => ("options_changed", values.0 != values.1),
        Options::OnlyTimestamp { may_go_back } => {
            ("timestamp_decreased", went_back && !may_go_back)
        }
    };
    [
        ("flags_changed", (next.flags ^ last.flags) & (ECE | AE) != 0),
        ("ack_changed", !follows(last.ack, next.ack, rules.ack)),
        ("window_changed", rules.window == Change::None && next.window != last.window),
        ("options_changed", arrangement(&last.options) != arrangement(&next.options)),
        timestamp,
    ]
    .into_iter()
    .find_map(|(name, is_broken)| is_broken.then_some(name))
}

/// Layout of the options, as far as a merged header depends on it.
#[derive(PartialEq)]
enum Arrangement {
    Nothing,
    /// Only a timestamp, at its usual offset.
    Usual,
    /// Only a timestamp, at another offset.
    Unusual,
    Other,
}

fn arrangement(field: &[u8]) -> Arrangement {
    match only_timestamp(field) {
        _ if field.is_empty() => Arrangement::Nothing,
        Some(_) if field.len() == 12 && field[..4] == [1, 1, 8, 10] => Arrangement::Usual,
        Some(_) => Arrangement::Unusual,
        None => Arrangement::Other,
    }
}

/// Returns `true` if the merged header can represent the last segment's options: the timestamp may change
/// only at its usual offset.
fn options_stay(last: &[u8], next: &[u8]) -> bool {
    debug_assert!(options::list(last).is_some(), "lists that lie are refused");
    last == next
        || arrangement(last) == Arrangement::Usual && arrangement(next) == Arrangement::Usual
}

fn follows(last: u32, next: u32, change: Change) -> bool {
    match change {
        Change::None => next == last,
        Change::Forward => (next.wrapping_sub(last) as i32) >= 0,
        Change::Any => true,
    }
}

/// Returns TSval from the body of a timestamp option.
fn value(body: &[u8]) -> u32 {
    u32::from_be_bytes([body[0], body[1], body[2], body[3]])
}

/// Returns the reason why the aggregate `held` is complete; `None` if more can be appended.
pub(super) fn closing(held: &[&Segment], rules: &Rules) -> Option<&'static str> {
    let (first, last) = (held[0], held[held.len() - 1]);
    [
        ("psh", last.flags & PSH != 0 && rules.psh != Psh::Kept),
        ("fin", last.flags & FIN != 0),
        ("short_segment", !rules.any_size && last.payload.len() < first.payload.len()),
        ("segment_limit", held.len() >= rules.max_segments),
    ]
    .into_iter()
    .find_map(|(name, closes)| closes.then_some(name))
}
