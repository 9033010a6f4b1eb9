//! Which pure ACKs may stand for which: written from the rules in words, compared field by field.
//!
//! A pure ACK tells its sender five things: how far the data came, how much more may come, that it
//! came at all, what is missing, and what the network marked. Whatever says one of them that the
//! next ACK does not say again is never aggregated.

use rxo_frame::Frame;

use super::decide::{self, ACK, AE, CWR, ECE};
use super::options::{self, Opt, SACK, TIMESTAMP};
use super::rules::{PureAcks, Rules};
use crate::naive::Segment;

/// Acknowledgement number and window: what two ACKs have in common when one repeats the other.
pub(super) type Point = (u32, u16);

/// What becomes of an ACK that meets others of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It joins them.
    Append,
    /// They are delivered, and it is held in their place.
    StartAnew,
    /// They are delivered, and it passes.
    Pass,
}

pub(super) const fn point(segment: &Segment) -> Point {
    (segment.ack, segment.window)
}

/// Whether a segment is a pure ACK as far as everything but its checksum says.
fn is_well_formed<B>(frame: &Frame<B>, segment: &Segment, rules: &Rules) -> bool {
    rules.ack_limit() >= 2
        && decide::is_plain_packet(frame, segment, rules)
        && segment.payload.is_empty()
        && segment.flags & ACK != 0
        && segment.flags & !(ACK | ECE | CWR | AE) == 0
        && segment.urgent == 0
        && options_allowed(&segment.options, rules)
        && !is_duplicate_sack(segment)
}

/// Whether a pure ACK may be aggregated with others.
pub(super) fn is_candidate<B>(
    frame: &Frame<B>,
    segment: &Segment,
    rules: &Rules,
    trusts: bool,
) -> bool {
    is_well_formed(frame, segment, rules) && decide::is_intact(frame, segment, trusts)
}

/// Whether its checksum was looked at and is wrong.
pub(super) fn is_corrupted<B>(
    frame: &Frame<B>,
    segment: &Segment,
    rules: &Rules,
    trusts: bool,
) -> bool {
    is_well_formed(frame, segment, rules) && !decide::is_intact(frame, segment, trusts)
}

/// None; or the timestamp and nothing else, wherever it stands; or, where the policy says so, SACK
/// with or without a timestamp.
fn options_allowed(field: &[u8], rules: &Rules) -> bool {
    if field.is_empty() {
        return true;
    }
    let Some(options) = options::real(field) else { return false };
    let timestamps = options.iter().filter(|opt| is_timestamp(opt)).count();
    let lists = options.iter().filter(|opt| is_sack(opt)).count();
    let superset = rules.sack_superset && rules.pure_acks == PureAcks::Single;
    let others = options.len() - timestamps - lists;
    others == 0 && timestamps <= 1 && lists <= usize::from(superset) && timestamps + lists > 0
}

fn is_timestamp(opt: &Opt) -> bool {
    opt.kind == TIMESTAMP && opt.body.len() == 8
}

fn is_sack(opt: &Opt) -> bool {
    opt.kind == SACK && !opt.body.is_empty() && opt.body.len().is_multiple_of(8)
}

/// The SACK option as it stands in the field; `None` when there is none.
pub(super) fn sack(segment: &Segment) -> Option<Vec<u8>> {
    options::list(&segment.options)?.into_iter().find(is_sack).map(|opt| opt.body)
}

/// Left and right edge of each block.
fn blocks(segment: &Segment) -> Vec<(u32, u32)> {
    let list = sack(segment).unwrap_or_default();
    let edge = |four: &[u8]| u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
    list.chunks(8).map(|block| (edge(block), edge(&block[4..]))).collect()
}

/// Whether the first block reports a segment that came twice (RFC 2883 section 4).
fn is_duplicate_sack(segment: &Segment) -> bool {
    match blocks(segment)[..] {
        [first, ..] if lies_below(first, segment.ack) => true,
        [first, second, ..] => covers(second, first),
        _ => false,
    }
}

/// What becomes of `next` when `last` is the last ACK held.
pub(super) fn verdict(last: &Segment, next: &Segment) -> Verdict {
    let repeats = point(next) == point(last) && !brings_news(last, next);
    if is_before(next.ack, last.ack) || repeats {
        return Verdict::Pass;
    }
    if is_alike(last, next) && has_all_blocks(last, next) {
        Verdict::Append
    } else {
        Verdict::StartAnew
    }
}

/// Whether `next` carries a SACK list that `last` does not.
fn brings_news(last: &Segment, next: &Segment) -> bool {
    sack(next).is_some() && sack(next) != sack(last)
}

fn is_alike(last: &Segment, next: &Segment) -> bool {
    let marks = ECE | CWR | AE;
    next.seq == last.seq
        && next.traffic_class == last.traffic_class
        && next.hop_limit == last.hop_limit
        && next.dont_fragment == last.dont_fragment
        && next.flow_label == last.flow_label
        && next.flags & marks == last.flags & marks
        && next.link == last.link
        && next.device_tag == last.device_tag
        && next.between == last.between
        && same_arrangement(last, next)
        && !is_before(time(next), time(last))
}

/// The same kinds and lengths in the same order, and headers of one length; the SACK list and what
/// goes with it aside.
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

/// TSval; 0 without a timestamp, for it is compared between equal arrangements only.
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

/// Whether `this` comes before `that`, as sequence numbers and timestamps do.
pub(super) const fn is_before(this: u32, that: u32) -> bool {
    (this.wrapping_sub(that) as i32) < 0
}
