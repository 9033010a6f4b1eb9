//! Decides which pure ACKs may replace each other: written from the rules in prose, comparing field by field.
//!
//! A pure ACK gives its sender five pieces of information: the received data, the window, the arrival itself,
//! the missing data, and the network's marks. If the next ACK does not repeat one of them, the ACK is never
//! aggregated.

use super::differ;
use super::options::{self, Opt, SACK, TIMESTAMP};
use super::refuse::{AE, CWR, ECE};
use crate::naive::Segment;
use crate::rules::{PureAcks, Rules};

/// Acknowledgement number and window, which are equal if one ACK repeats another.
pub(super) type Point = (u32, u16);

/// The treatment of an ACK while its flow holds others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The ACK joins the held ones.
    Append,
    /// The held ACKs are delivered for this reason, and the new one is held.
    StartAnew(&'static str),
    /// The held ACKs are delivered for the first reason, and the new one passes for the second.
    Pass(&'static str, &'static str),
}

pub(super) const fn point(segment: &Segment) -> Point {
    (segment.ack, segment.window)
}

/// Returns the reason why a pure ACK's options forbid aggregation; `None` if they permit it. Permitted are:
/// no options; only a timestamp, at any offset; and if the policy allows it, SACK with or without a
/// timestamp, unless it reports a duplicate.
pub(super) fn refused_options(segment: &Segment, rules: &Rules) -> Option<&'static str> {
    if segment.options.is_empty() {
        return None;
    }
    let Some(options) = options::real(&segment.options) else { return Some("tcp_options") };
    let timestamps = options.iter().filter(|opt| is_timestamp(opt)).count();
    let lists = options.iter().filter(|opt| is_sack(opt)).count();
    if options.len() != timestamps + lists || timestamps > 1 || lists > 1 || options.is_empty() {
        return Some("tcp_options");
    }
    let superset = rules.sack_superset && rules.pure_acks == PureAcks::Single;
    (lists == 1 && (!superset || is_duplicate_sack(segment))).then_some("sack")
}

fn is_timestamp(opt: &Opt) -> bool {
    opt.kind == TIMESTAMP && opt.body.len() == 8
}

fn is_sack(opt: &Opt) -> bool {
    opt.kind == SACK && !opt.body.is_empty() && opt.body.len().is_multiple_of(8)
}

/// Returns the body of the SACK option; `None` without one.
pub(super) fn sack(segment: &Segment) -> Option<Vec<u8>> {
    options::list(&segment.options)?.into_iter().find(is_sack).map(|opt| opt.body)
}

/// Returns the left and right edge of each SACK block.
fn blocks(segment: &Segment) -> Vec<(u32, u32)> {
    let list = sack(segment).unwrap_or_default();
    let edge = |four: &[u8]| u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
    list.chunks(8).map(|block| (edge(block), edge(&block[4..]))).collect()
}

/// Returns `true` if the first block reports a duplicate segment (RFC 2883 section 4).
fn is_duplicate_sack(segment: &Segment) -> bool {
    match blocks(segment)[..] {
        [first, ..] if lies_below(first, segment.ack) => true,
        [first, second, ..] => covers(second, first),
        _ => false,
    }
}

/// Decides about `next` while `last` is the last held ACK.
pub(super) fn verdict(last: &Segment, next: &Segment) -> Verdict {
    if is_before(next.ack, last.ack) {
        return Verdict::Pass("ack_changed", "old_ack");
    }
    if point(next) == point(last) && !brings_news(last, next) {
        return Verdict::Pass("ack_repeated", "duplicate_ack");
    }
    match difference(last, next) {
        None => Verdict::Append,
        Some(reason) => Verdict::StartAnew(reason),
    }
}

/// Returns `true` if `next` carries a SACK list that `last` does not.
fn brings_news(last: &Segment, next: &Segment) -> bool {
    sack(next).is_some() && sack(next) != sack(last)
}

/// Returns the first difference that a single ACK in place of both would hide; `None` if there is none.
fn difference(last: &Segment, next: &Segment) -> Option<&'static str> {
    let marks = ECE | CWR | AE;
    let has_list = sack(last).is_some() || sack(next).is_some();
    let went_back = is_before(time(next), time(last));
    let hides =
        !same_arrangement(last, next) || has_list && (went_back || !has_all_blocks(last, next));
    let rest = [
        ("flags_changed", next.flags & marks != last.flags & marks),
        ("link_changed", differ::link(next) != differ::link(last)),
        ("options_changed", hides),
        ("timestamp_decreased", went_back),
    ];
    (next.seq != last.seq)
        .then_some("out_of_sequence")
        .or_else(|| differ::ip_header(last, next))
        .or_else(|| rest.iter().find_map(|(name, is_broken)| is_broken.then_some(*name)))
}

/// Returns `true` if both ACKs have the same option kinds and lengths in the same order, and equal header
/// lengths; the SACK option and its padding are ignored.
fn same_arrangement(last: &Segment, next: &Segment) -> bool {
    let shape = |segment: &Segment| -> Option<Vec<(u8, usize)>> {
        let options = options::list(&segment.options)?;
        Some(options.iter().map(|opt| (opt.kind, opt.body.len())).collect())
    };
    if sack(last).is_none() && sack(next).is_none() {
        return shape(last) == shape(next) && last.options.len() == next.options.len();
    }
    let has_time = |segment| timestamp(segment).is_some();
    has_time(last) == has_time(next)
}

/// Returns TSval; 0 without a timestamp, which is harmless because only equal option layouts are compared.
fn time(segment: &Segment) -> u32 {
    timestamp(segment).unwrap_or(0)
}

fn timestamp(segment: &Segment) -> Option<u32> {
    let options = options::list(&segment.options)?;
    let body = options.into_iter().find(is_timestamp)?.body;
    Some(u32::from_be_bytes([body[0], body[1], body[2], body[3]]))
}

fn has_all_blocks(last: &Segment, next: &Segment) -> bool {
    let newer = blocks(next);
    blocks(last)
        .iter()
        .all(|old| lies_below(*old, next.ack) || newer.iter().any(|block| covers(*block, *old)))
}

fn covers(outer: (u32, u32), inner: (u32, u32)) -> bool {
    !is_before(inner.0, outer.0) && !is_before(outer.1, inner.1)
}

fn lies_below(block: (u32, u32), ack: u32) -> bool {
    !is_before(ack, block.1)
}

/// Returns `true` if `this` precedes `that`, in the wrapping order of sequence numbers and timestamps.
pub(super) const fn is_before(this: u32, that: u32) -> bool {
    (this.wrapping_sub(that) as i32) < 0
}
