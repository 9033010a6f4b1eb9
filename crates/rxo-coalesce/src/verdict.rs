//! May this segment join what its flow holds?
//!
//! A pure and total function: the same flow, the same candidate and the same policy always give
//! the same verdict. Acting on it is the engine's work.

use rxo_wire::{IpVersion, TcpFlags, tcp::OptionLayout};

use crate::{
    AckRule, BypassReason, Candidate, FlushReason, Held, IdPattern, OptionRule, PayloadRule,
    Policy, PshRule, WindowRule,
};

/// What is to be done with a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is held: hold it, or deliver it at once for the reason given.
    Start(Option<FlushReason>),
    /// It joins what is held, which is then delivered for the reason given, if any.
    Append(Option<FlushReason>),
    /// What is held is delivered for the reason given; then it starts anew.
    FlushThenStart(FlushReason, Option<FlushReason>),
    /// What is held is delivered for the reason given; then it is delivered untouched.
    FlushThenBypass(FlushReason, BypassReason),
    /// Nothing is held; it is delivered untouched.
    Bypass(BypassReason),
}

/// A segment's bytes up to its payload, beside what was read from them: rules that compare byte
/// for byte need them.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    /// Those of the last segment held; its link, extension and option bytes stand for all.
    pub held: &'a [u8],
    /// Those of the candidate.
    pub candidate: &'a [u8],
}

/// Judges `candidate` against what its flow holds.
#[inline]
#[must_use]
pub fn verdict(
    held: Option<(&Held, Headers<'_>)>,
    candidate: Candidate<'_>,
    policy: &Policy,
) -> Verdict {
    let Some((held, headers)) = held else {
        return match alone(candidate, policy) {
            Ok(close) => Verdict::Start(close),
            Err(reason) => Verdict::Bypass(reason),
        };
    };
    match mismatch(held, headers, candidate, policy) {
        None => Verdict::Append(close_after(held, candidate, policy)),
        Some(flush) => match alone(candidate, policy) {
            Ok(close) => Verdict::FlushThenStart(flush, close),
            Err(reason) => Verdict::FlushThenBypass(flush, reason),
        },
    }
}

/// What becomes of a candidate with nothing held: held, or delivered at once (`Ok` with the
/// reason), or not counted among the coalesced at all (`Err`).
#[inline]
fn alone(candidate: Candidate<'_>, policy: &Policy) -> Result<Option<FlushReason>, BypassReason> {
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

/// Whether, having appended `candidate`, the aggregate is to be delivered.
#[inline]
fn close_after(held: &Held, candidate: Candidate<'_>, policy: &Policy) -> Option<FlushReason> {
    let flags = candidate.tcp.flags;
    if flags.contains(TcpFlags::PSH) && policy.psh != PshRule::Keep {
        return Some(FlushReason::Psh);
    }
    if flags.contains(TcpFlags::FIN) {
        return Some(FlushReason::Fin);
    }
    if policy.payload == PayloadRule::SameThenShorter
        && candidate.parsed.payload_bytes() < held.gso_size
    {
        return Some(FlushReason::ShortSegment);
    }
    (held.segments + 1 >= u32::from(policy.max_segments)).then_some(FlushReason::SegmentLimit)
}

/// The first rule that `candidate` breaks against `held`.
#[inline]
fn mismatch(
    held: &Held,
    headers: Headers<'_>,
    candidate: Candidate<'_>,
    policy: &Policy,
) -> Option<FlushReason> {
    if candidate.tcp.seq != held.next_seq {
        return Some(FlushReason::OutOfSequence);
    }
    network(held, candidate)
        .or_else(|| transport(held, candidate, policy))
        .or_else(|| bytes(held, headers, candidate))
        .or_else(|| {
            (candidate.checksum.is_partial() != held.checksum.is_partial())
                .then_some(FlushReason::ChecksumStatus)
        })
        .or_else(|| size(held, candidate, policy))
}

/// The IP header's fields.
#[inline]
fn network(held: &Held, candidate: Candidate<'_>) -> Option<FlushReason> {
    let (first, next) = (&held.ip, &candidate.parsed.ip);
    if next.traffic_class != first.traffic_class {
        Some(FlushReason::TrafficClass)
    } else if next.hop_limit != first.hop_limit {
        Some(FlushReason::HopLimit)
    } else if next.dont_fragment != first.dont_fragment {
        Some(FlushReason::DontFragment)
    } else if next.flow_label != first.flow_label {
        Some(FlushReason::FlowLabel)
    } else if !id_follows(held, candidate) {
        Some(FlushReason::IpId)
    } else {
        None
    }
}

/// IPv4 ID: fixed or incrementing by one, decided at the second segment. A fixed one needs DF:
/// without it equal IDs would name fragments of one packet.
#[inline]
fn id_follows(held: &Held, candidate: Candidate<'_>) -> bool {
    let ip = &candidate.parsed.ip;
    if ip.version == IpVersion::V6 {
        return true;
    }
    let fixed = ip.id == held.last_id && ip.dont_fragment;
    let incrementing = ip.id == held.last_id.wrapping_add(1);
    match held.id_pattern {
        IdPattern::Undecided => fixed || incrementing,
        IdPattern::Fixed => fixed,
        IdPattern::Incrementing => incrementing,
    }
}

/// The TCP header's fields.
#[inline]
fn transport(held: &Held, candidate: Candidate<'_>, policy: &Policy) -> Option<FlushReason> {
    let (last, next) = (&held.last, candidate.tcp);
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

/// What must be equal byte for byte: link header, extension headers, options that were not read.
#[inline]
fn bytes(held: &Held, headers: Headers<'_>, candidate: Candidate<'_>) -> Option<FlushReason> {
    let parsed = candidate.parsed;
    let layout = (parsed.network, parsed.transport_at);
    if layout != (held.network, held.transport) {
        return Some(FlushReason::Link);
    }
    if parsed.payload != held.header_bytes {
        return Some(FlushReason::Options);
    }
    let network = parsed.network as usize;
    if candidate.vlan != held.vlan
        || headers.held.get(..network) != headers.candidate.get(..network)
    {
        return Some(FlushReason::Link);
    }
    if parsed.ip.has_options {
        // IPv6 only (RFC 8200): everything between the fixed header and TCP, and next header.
        let transport = parsed.transport_at as usize;
        let chain = network + 40..transport;
        let next_header = network + 6;
        if headers.held.get(chain.clone()) != headers.candidate.get(chain)
            || headers.held.get(next_header) != headers.candidate.get(next_header)
        {
            return Some(FlushReason::Link);
        }
    }
    let read = matches!(candidate.tcp.options, OptionLayout::None | OptionLayout::AlignedTimestamp);
    let options = parsed.transport_at as usize + 20..parsed.payload as usize;
    if !read && headers.held.get(options.clone()) != headers.candidate.get(options) {
        // With the timestamp in another place than usual the merged header could not say the
        // last one, whatever the policy; equal bytes can be merged.
        return Some(FlushReason::Options);
    }
    None
}

/// Payload sizes and limits.
#[inline]
fn size(held: &Held, candidate: Candidate<'_>, policy: &Policy) -> Option<FlushReason> {
    let payload = candidate.parsed.payload_bytes();
    if policy.payload == PayloadRule::SameThenShorter && payload > held.gso_size {
        return Some(FlushReason::LongSegment);
    }
    if held.packet_bytes() + payload > policy.max_bytes
        || held.payload_bytes + payload > policy.buffer_bytes
    {
        return Some(FlushReason::ByteLimit);
    }
    None
}
