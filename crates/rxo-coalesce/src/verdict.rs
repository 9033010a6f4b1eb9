//! Verdict: decides whether a segment may join the aggregate of its flow.
//!
//! A pure and total function: the same flow, the same candidate and the same policy always give the same
//! verdict. The engine applies it.

use core::ops::Range;

use rxo_wire::tcp::OptionLayout;
use rxo_wire::{IpVersion, TcpFlags};

use crate::single::Starts;
use crate::{
    AckRule, BypassReason, Candidate, FlushReason, Held, IdPattern, IdRule, OptionRule,
    PayloadRule, Policy, PshRule, WindowRule,
};

/// The decision on a candidate: hold, append, flush or deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The flow of the candidate holds nothing. If the reason is `None`, hold the candidate as the first of an
    /// aggregate; otherwise deliver it alone at once, for this reason.
    Start(Option<FlushReason>),
    /// Append the candidate to the held aggregate, then flush the aggregate if a reason is given.
    Append(Option<FlushReason>),
    /// Flush the held aggregate for the first reason. Then treat the candidate as in [`Verdict::Start`], with the
    /// second reason.
    FlushThenStart(FlushReason, Option<FlushReason>),
    /// Flush the held aggregate for this reason, then deliver the candidate untouched.
    FlushThenBypass(FlushReason, BypassReason),
    /// Nothing is held: deliver the candidate untouched.
    Bypass(BypassReason),
}

impl Verdict {
    /// Returns the reason for which the held segments are flushed before the candidate; `None` if they are
    /// not.
    pub(crate) const fn flushes(self) -> Option<FlushReason> {
        match self {
            Self::FlushThenStart(reason, _) | Self::FlushThenBypass(reason, _) => Some(reason),
            Self::Start(_) | Self::Append(_) | Self::Bypass(_) => None,
        }
    }
}

/// Decides on `candidate`. `held` contains the state of the candidate's flow and the last segment that the flow
/// holds; `None` if the flow holds nothing.
#[inline]
#[must_use]
pub fn verdict(
    held: Option<(&Held, &Candidate<'_>)>,
    candidate: &Candidate<'_>,
    policy: &Policy,
) -> Verdict {
    let Some((held, last)) = held else {
        return match alone(candidate, policy) {
            Ok(close) => Verdict::Start(close),
            Err(reason) => Verdict::Bypass(reason),
        };
    };
    match mismatch(held, last, candidate, policy) {
        None => Verdict::Append(close_after(held, candidate, policy)),
        Some(flush) => separate(flush, candidate, policy),
    }
}

/// Returns the verdict on a candidate that does not join its flow, which is flushed for the reason `flush`.
#[inline]
pub(crate) fn separate(flush: FlushReason, candidate: &Candidate<'_>, policy: &Policy) -> Verdict {
    match alone(candidate, policy) {
        Ok(close) => Verdict::FlushThenStart(flush, close),
        Err(reason) => Verdict::FlushThenBypass(flush, reason),
    }
}

/// Decides on a candidate whose flow holds nothing. `Ok(None)`: hold the candidate; `Ok(Some)`: deliver it alone
/// at once, for this reason; `Err`: let it bypass.
#[inline]
fn alone(candidate: &Candidate<'_>, policy: &Policy) -> Result<Option<FlushReason>, BypassReason> {
    let flags = candidate.tcp.flags;
    if flags.contains(TcpFlags::PSH) {
        match policy.psh {
            PshRule::Keep => {}
            PshRule::AppendThenClose => return Ok(Some(FlushReason::Psh)),
            PshRule::AppendThenCloseAloneAsIs => return Err(BypassReason::PshAlone),
        }
    }
    if flags.contains(TcpFlags::FIN) {
        return Ok(Some(FlushReason::Fin));
    }
    Ok((policy.max_segments == 1).then_some(FlushReason::SegmentLimit))
}

/// Returns the reason to flush the aggregate after `candidate` was appended; `None` if it stays held.
#[inline]
fn close_after(held: &Held, candidate: &Candidate<'_>, policy: &Policy) -> Option<FlushReason> {
    let flags = candidate.tcp.flags;
    if flags.contains(TcpFlags::PSH) && policy.psh != PshRule::Keep {
        return Some(FlushReason::Psh);
    }
    if flags.contains(TcpFlags::FIN) {
        return Some(FlushReason::Fin);
    }
    if has_one_size(candidate, policy) && candidate.payload_bytes() < held.gso_size {
        return Some(FlushReason::ShortSegment);
    }
    let most = match candidate.is_datagram {
        true => policy.most_datagrams(),
        false => policy.max_segments.into(),
    };
    (held.segments + 1 >= most).then_some(FlushReason::SegmentLimit)
}

/// Returns the first rule that `candidate` breaks against `held`, whose last segment is `last`; `None` if it
/// breaks none.
#[inline]
fn mismatch(
    held: &Held,
    last: &Candidate<'_>,
    candidate: &Candidate<'_>,
    policy: &Policy,
) -> Option<FlushReason> {
    if held.kind() != candidate.kind() {
        return Some(FlushReason::Order);
    }
    let is_datagram = candidate.is_datagram;
    // First among the rules for data; the *Expected* tier relies on this.
    if !is_datagram && candidate.tcp.seq != held.next_seq {
        return Some(FlushReason::OutOfSequence);
    }
    ip_fields(last, candidate)
        .or_else(|| (!id_follows(held, last, candidate, policy)).then_some(FlushReason::IpId))
        .or_else(|| if is_datagram { None } else { transport(last, candidate, policy) })
        .or_else(|| link_bytes(last, candidate))
        .or_else(|| if is_datagram { None } else { option_bytes(last, candidate) })
        .or_else(|| {
            (candidate.checksum.is_partial() != last.checksum.is_partial())
                .then_some(FlushReason::ChecksumStatus)
        })
        .or_else(|| size(held, candidate, policy))
}

/// Compares the fields of the IP headers, except for the ID. Returns the first rule that is broken, or
/// `None`.
#[inline]
pub(crate) fn ip_fields(last: &Candidate<'_>, candidate: &Candidate<'_>) -> Option<FlushReason> {
    let (held_ip, next) = (&last.ip, &candidate.ip);
    if next.traffic_class != held_ip.traffic_class {
        Some(FlushReason::TrafficClass)
    } else if next.hop_limit != held_ip.hop_limit {
        Some(FlushReason::HopLimit)
    } else if next.dont_fragment != held_ip.dont_fragment {
        Some(FlushReason::DontFragment)
    } else if next.flow_label != held_ip.flow_label {
        Some(FlushReason::FlowLabel)
    } else {
        None
    }
}

/// Returns `true` if the IPv4 ID follows the pattern of the held packets: constant, or incrementing by one. The
/// second packet of an aggregate determines the pattern. Also returns `true` for any ID if the policy allows any.
/// Datagrams must always follow the pattern, because their receiver segments them.
#[inline]
fn id_follows(
    held: &Held,
    last: &Candidate<'_>,
    candidate: &Candidate<'_>,
    policy: &Policy,
) -> bool {
    if candidate.ip.version == IpVersion::V6 {
        return true;
    }
    let step = regular_step(last, candidate);
    let follows = match held.id_pattern {
        IdPattern::Undecided => step <= 1,
        IdPattern::Fixed => step == 0,
        IdPattern::Incrementing => step == 1,
        IdPattern::Mixed => false,
    };
    follows || (policy.ip_id == IdRule::Any && !candidate.is_datagram)
}

/// Returns the increment of the IPv4 ID from `last` to `next` if it is regular: 1, or 0 with DF. Returns
/// [`IRREGULAR`] for any other increment, and for equal IDs without DF, which would identify fragments of one
/// packet.
#[inline]
pub(crate) const fn regular_step(last: &Candidate<'_>, next: &Candidate<'_>) -> u16 {
    match next.ip.id.wrapping_sub(last.ip.id) {
        1 => 1,
        0 if next.ip.dont_fragment => 0,
        _ => IRREGULAR,
    }
}

/// The value that represents every increment of the IPv4 ID other than 0 and 1.
const IRREGULAR: u16 = 2;

/// Compares the fields of the TCP headers by the rules of the policy. Returns the first rule that is broken.
#[inline]
fn transport(
    last: &Candidate<'_>,
    candidate: &Candidate<'_>,
    policy: &Policy,
) -> Option<FlushReason> {
    let (last, next) = (&last.tcp, &candidate.tcp);
    let watched = TcpFlags::ECE | TcpFlags::AE;
    if next.flags.bits() & watched.bits() != last.flags.bits() & watched.bits() {
        return Some(FlushReason::Flags);
    }
    let ack_follows = match policy.ack {
        AckRule::Equal => next.ack == last.ack,
        AckRule::Latest => true,
        AckRule::NotDecreasing => next.ack.is_at_or_after(last.ack),
    };
    if !ack_follows {
        return Some(FlushReason::Ack);
    }
    if policy.window == WindowRule::Equal && next.window != last.window {
        return Some(FlushReason::Window);
    }
    if next.options != last.options {
        return Some(FlushReason::Options);
    }
    let went_back = next.timestamp.value.wrapping_sub(last.timestamp.value) as i32;
    match policy.options {
        OptionRule::TimestampNotDecreasing if went_back < 0 => Some(FlushReason::Timestamp),
        OptionRule::Identical if next.timestamp != last.timestamp => Some(FlushReason::Options),
        _ => None,
    }
}

/// Compares the bytes below TCP that must be equal: link header and extension headers. Returns the rule that
/// they break, or `None`. The outer headers of a tunnel are compared in [`tunnels`](crate::tunnels).
#[inline]
pub(crate) fn link_bytes(last: &Candidate<'_>, candidate: &Candidate<'_>) -> Option<FlushReason> {
    let (held, next) = (last, candidate);
    let network = next.at.network as usize;
    let differ = |range: Range<usize>| last.bytes.get(range.clone()) != candidate.bytes.get(range);
    if (next.at.network, next.at.transport) != (held.at.network, held.at.transport)
        || candidate.vlan != last.vlan
        || (differ(0..network) && !Starts::at(next.at).is_in_tunnel())
    {
        return Some(FlushReason::Link);
    }
    // Here only IPv6 packets have options: extension headers, and the next-header field before them.
    let extensions = network + 40..next.at.transport as usize;
    (next.ip.has_options && (differ(extensions) || differ(network + 6..network + 7)))
        .then_some(FlushReason::Link)
}

/// Checks that the TCP options have equal length and, unless they were parsed, equal bytes. Returns the rule that
/// they break, or `None`.
#[inline]
fn option_bytes(last: &Candidate<'_>, candidate: &Candidate<'_>) -> Option<FlushReason> {
    let (held, next) = (last, candidate);
    let options = next.at.tcp_options();
    let was_read =
        matches!(candidate.tcp.options, OptionLayout::None | OptionLayout::AlignedTimestamp);
    // The merged header can only get new values for parsed options; all others must be equal to be kept.
    let differ = || last.bytes.get(options.clone()) != candidate.bytes.get(options);
    (next.at.payload != held.at.payload || (!was_read && differ())).then_some(FlushReason::Options)
}

/// Returns `true` if all segments must have the size of the first. Datagrams always must, because only their
/// size shows where one ends.
#[inline]
fn has_one_size(candidate: &Candidate<'_>, policy: &Policy) -> bool {
    candidate.is_datagram || policy.payload == PayloadRule::SameThenShorter
}

/// Checks the payload size against the first segment's and against the policy's limits. Returns the rule that the
/// payload size breaks, or `None`.
#[inline]
fn size(held: &Held, candidate: &Candidate<'_>, policy: &Policy) -> Option<FlushReason> {
    let payload = candidate.payload_bytes();
    if has_one_size(candidate, policy) && payload > held.gso_size {
        return Some(FlushReason::LongSegment);
    }
    if held.packet_bytes() + payload > policy.max_bytes
        || held.payload_bytes + payload > policy.buffer_bytes
    {
        return Some(FlushReason::ByteLimit);
    }
    None
}

#[cfg(test)]
mod tests;
