//! What may be coalesced at all, and with what.

use rxo_frame::Frame;

use super::options::{self, TIMESTAMP};
use super::rules::{Change, Options, Psh, Rules};
use crate::naive::Segment;

const FIN: u16 = 0x001;
const PSH: u16 = 0x008;
pub(super) const ACK: u16 = 0x010;
pub(super) const ECE: u16 = 0x040;
pub(super) const CWR: u16 = 0x080;
pub(super) const AE: u16 = 0x100;
/// The longest header that a merged packet can have here.
const LONGEST_HEADER: usize = 192;

/// Whether a segment may be coalesced with anything.
pub(super) fn is_candidate<B>(
    frame: &Frame<B>,
    segment: &Segment,
    rules: &Rules,
    trusts: bool,
) -> bool {
    is_well_formed(frame, segment, rules) && is_intact(frame, segment, trusts)
}

/// Whether a checksum shows that bytes were changed on the way, as far as it is looked at: the
/// ports may then be another flow's.
pub(super) fn is_corrupted<B>(
    frame: &Frame<B>,
    segment: &Segment,
    rules: &Rules,
    trusts: bool,
) -> bool {
    let is_looked_at = is_well_formed(frame, segment, rules);
    !segment.ip_checksum_ok || (is_looked_at && !is_intact(frame, segment, trusts))
}

pub(super) fn is_intact<B>(frame: &Frame<B>, segment: &Segment, trusts: bool) -> bool {
    trusts || frame.checksum.is_trusted() || segment.checksum_ok
}

/// All that is asked of a candidate but its TCP checksum.
fn is_well_formed<B>(frame: &Frame<B>, segment: &Segment, rules: &Rules) -> bool {
    let allowed = ACK | PSH | ECE | AE | if rules.appends_fin { FIN } else { 0 };
    is_plain_packet(frame, segment, rules)
        && segment.flags & ACK != 0
        && segment.flags & !allowed == 0
        && segment.urgent == 0
        && !segment.payload.is_empty()
        && options_allowed(&segment.options, rules.options)
        && segment.packet_bytes() <= rules.max_bytes
        && segment.payload.len() <= rules.max_payload
}

/// What is asked of the IP packet around a candidate.
pub(super) fn is_plain_packet<B>(frame: &Frame<B>, segment: &Segment, rules: &Rules) -> bool {
    let between = if segment.v6 { segment.between.len() > 1 } else { !segment.between.is_empty() };
    let may_have_between = segment.v6 && rules.merges_extensions;
    rules.coalesce
        && frame.gso.is_none()
        && segment.ip_checksum_ok
        && !segment.reserved_bit
        && (!between || may_have_between)
        && segment.payload_at <= LONGEST_HEADER
}

fn options_allowed(field: &[u8], rule: Options) -> bool {
    match (options::real(field), rule) {
        (None, _) => false,
        (Some(_), Options::Identical) => true,
        (Some(real), Options::OnlyTimestamp { .. }) => {
            let only = real.len() == 1 && real[0].kind == TIMESTAMP && real[0].body.len() == 8;
            field.is_empty() || only
        }
    }
}

/// Whether `next` may join `held`, all of one flow and all candidates.
pub(super) fn may_join<B>(
    held: &[(&Frame<B>, &Segment)],
    frame: &Frame<B>,
    next: &Segment,
    rules: &Rules,
) -> bool {
    let (first, last) = (held[0].1, held[held.len() - 1].1);
    let payload: usize = held.iter().map(|(_, segment)| segment.payload.len()).sum();
    let merged = first.payload_at - first.network_at + payload + next.payload.len();
    next.seq == last.seq.wrapping_add(last.payload.len() as u32)
        && next.link == first.link
        && next.device_tag == first.device_tag
        && next.v6 == first.v6
        && next.traffic_class == first.traffic_class
        && next.hop_limit == first.hop_limit
        && next.flow_label == first.flow_label
        && next.dont_fragment == first.dont_fragment
        && next.between == first.between
        && (next.v6 || id_follows(held, next))
        && (next.flags ^ first.flags) & (ECE | AE) == 0
        && follows(last.ack, next.ack, rules.ack)
        && (rules.window == Change::Any || next.window == last.window)
        && options_follow(&last.options, &next.options, rules.options)
        && frame.checksum.is_partial() == held[0].0.checksum.is_partial()
        && (rules.any_size || next.payload.len() <= first.payload.len())
        && merged <= rules.max_bytes
        && payload + next.payload.len() <= rules.max_payload
        && held.len() < rules.max_segments
}

/// The ID stays or counts, as the second segment decided; it stays only with DF.
fn id_follows<B>(held: &[(&Frame<B>, &Segment)], next: &Segment) -> bool {
    let ids: Vec<u16> = held.iter().map(|(_, segment)| segment.id).chain([next.id]).collect();
    let fixed = ids.windows(2).all(|pair| pair[1] == pair[0]) && next.dont_fragment;
    let counts = ids.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1));
    fixed || counts
}

fn follows(last: u32, next: u32, change: Change) -> bool {
    match change {
        Change::None => next == last,
        Change::Forward => (next.wrapping_sub(last) as i32) >= 0,
        Change::Any => true,
    }
}

fn options_follow(last: &[u8], next: &[u8], rule: Options) -> bool {
    // Only where the timestamp stands in its usual place can the merged header say the last one.
    let usual = |options: &[u8]| options.len() == 12 && options[..4] == [1, 1, 8, 10];
    match rule {
        _ if last == next => true,
        Options::OnlyTimestamp { may_go_back } if usual(last) && usual(next) => {
            may_go_back || follows(value(last), value(next), Change::Forward)
        }
        _ => false,
    }
}

fn value(options: &[u8]) -> u32 {
    u32::from_be_bytes([options[4], options[5], options[6], options[7]])
}

/// Whether nothing can be appended to `held` any more.
pub(super) fn is_closed(held: &[&Segment], rules: &Rules) -> bool {
    let (first, last) = (held[0], held[held.len() - 1]);
    (last.flags & PSH != 0 && rules.psh != Psh::Kept)
        || last.flags & FIN != 0
        || (!rules.any_size && last.payload.len() < first.payload.len())
        || held.len() >= rules.max_segments
}
