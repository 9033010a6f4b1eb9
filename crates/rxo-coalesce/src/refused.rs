//! Classifies a packet by fixed offsets: refused by a static rule, ordinary, or undecided.
//!
//! Part of the *Ordinary* tier. Separate from [`candidate`](crate::candidate()), which applies the static rules
//! to parsed headers. Most packets that are refused (SYN, FIN, RST, fragments, other protocols, wrong lengths)
//! need only a few fields, and parsing all headers takes ten times as long. Contract: the refusal reason of a
//! packet is the one that `parse` and `candidate` would give.

use rxo_wire::checksum::Sum;
use rxo_wire::tcp::{FixedHeader, MIN_HEADER_BYTES};
use rxo_wire::tunnel::Tunnel;
use rxo_wire::udp::HEADER_BYTES as UDP_BYTES;
use rxo_wire::{
    FlowKey, IpVersion, PROTOCOL_TCP, PROTOCOL_UDP, Transport, is_extension_header,
    plain_v4_checksum,
};

use crate::candidate::{are_odd, check_flags};
use crate::shape::Shape;
use crate::{BypassReason, Policy};

const V4_BYTES: usize = 20;
const V6_BYTES: usize = 40;
/// The bits of the fragment field that are set only in fragments: MF, and the offset. The bit before them is
/// DF.
const FRAGMENT: u16 = 0x3fff;
const RESERVED_BIT: u16 = 0x8000;

/// The class of a packet, as determined from fixed offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketClass {
    /// The packet is delivered untouched. `ip_bytes` is the length of the packet's IP header in bytes if it
    /// is a TCP segment with valid lengths; otherwise 0.
    Refused { reason: BypassReason, ip_bytes: usize },
    /// The packet is a TCP segment with payload and no flag but ACK and PSH. It is not a fragment, and its IP
    /// header is valid and has neither options nor extension headers.
    Ordinary,
    /// Only the full rules can decide: they may accept the packet, or refuse it for a reason that is not
    /// checked here.
    Nothing,
}

impl PacketClass {
    /// Returns the refusal of a packet that is not TCP, or cannot be parsed.
    #[inline]
    const fn unread(reason: BypassReason) -> Self {
        Self::Refused { reason, ip_bytes: 0 }
    }
}

/// Classifies `packet`, which begins with its IP header, under `policy`.
#[inline(always)]
pub(crate) fn classify<S: Shape>(packet: &[u8], policy: &Policy) -> PacketClass {
    let shown = match S::VERSION {
        IpVersion::V4 => classify_v4(packet, policy),
        IpVersion::V6 => classify_v6(packet, policy),
    };
    shown.unwrap_or(PacketClass::Nothing)
}

/// Returns the flow key of a packet that [`classify`] classifies. Its ports are valid only if the packet is a
/// TCP segment that is not malformed.
pub(crate) fn flow<S: Shape>(packet: &[u8]) -> FlowKey {
    let word = |at: usize| {
        let field = packet.get(at..).and_then(<[u8]>::first_chunk);
        field.map_or(0, |field| u32::from_be_bytes(*field))
    };
    match S::VERSION {
        IpVersion::V4 => {
            let header_bytes = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
            FlowKey::v4(word(12), word(16), word(header_bytes), 0)
        }
        IpVersion::V6 => {
            let addresses = packet.get(8..).and_then(<[u8]>::first_chunk);
            addresses.map_or(FlowKey::NONE, |found| FlowKey::v6(found, word(V6_BYTES), 0))
        }
    }
}

#[inline(always)]
fn classify_v4(packet: &[u8], policy: &Policy) -> Option<PacketClass> {
    let ip: &[u8; V4_BYTES] = packet.first_chunk()?;
    // The checks are in the order of the parser, so that a packet gets the same reason.
    let (header_bytes, total) = (usize::from(ip[0] & 0x0f) * 4, half(ip[2], ip[3]).into());
    if ip[0] >> 4 != 4 {
        return None;
    }
    if header_bytes < V4_BYTES || total < header_bytes {
        return Some(PacketClass::unread(BypassReason::Malformed));
    }
    let Some(body) = packet.get(header_bytes..total) else {
        return Some(PacketClass::unread(BypassReason::Truncated));
    };
    let fragment = half(ip[6], ip[7]);
    if fragment & FRAGMENT != 0 {
        return Some(PacketClass::unread(BypassReason::Fragment));
    }
    if ip[9] != PROTOCOL_TCP {
        return other_protocol(ip[9], body, policy).map(PacketClass::unread);
    }
    let tcp = match Segment::read(body) {
        Ok(tcp) => tcp,
        Err(reason) => return Some(PacketClass::unread(reason)),
    };
    // Pure ACKs that may be aggregated have other rules.
    if tcp.is_empty && policy.ack_limit() >= 2 {
        return None;
    }
    let reason = if !is_v4_checksum_right(packet, header_bytes) {
        BypassReason::BadIpChecksum
    } else if fragment & RESERVED_BIT != 0 {
        BypassReason::ReservedBit
    } else if header_bytes != V4_BYTES {
        BypassReason::IpOptions
    } else {
        return tcp.classify(policy, header_bytes);
    };
    Some(PacketClass::Refused { reason, ip_bytes: header_bytes })
}

#[inline]
fn is_v4_checksum_right(packet: &[u8], header_bytes: usize) -> bool {
    match header_bytes {
        V4_BYTES => plain_v4_checksum(packet),
        _ => packet.get(..header_bytes).is_some_and(|header| Sum::of(header).is_valid()),
    }
}

#[inline]
fn classify_v6(packet: &[u8], policy: &Policy) -> Option<PacketClass> {
    let ip: &[u8; V6_BYTES] = packet.first_chunk()?;
    if ip[0] >> 4 != 6 || is_extension_header(ip[6]) {
        return None;
    }
    let total = V6_BYTES + usize::from(half(ip[4], ip[5]));
    let Some(body) = packet.get(V6_BYTES..total) else {
        return Some(PacketClass::unread(BypassReason::Truncated));
    };
    if ip[6] != PROTOCOL_TCP {
        return other_protocol(ip[6], body, policy).map(PacketClass::unread);
    }
    match Segment::read(body) {
        Ok(tcp) if tcp.is_empty && policy.ack_limit() >= 2 => None,
        Ok(tcp) => tcp.classify(policy, V6_BYTES),
        Err(reason) => Some(PacketClass::unread(reason)),
    }
}

/// Returns the reason to refuse a packet that is neither TCP nor a fragment. `None` if the packet is UDP and
/// the policy coalesces UDP, or if it is a tunnel packet and the policy coalesces TCP inside tunnels.
#[inline]
fn other_protocol(protocol: u8, body: &[u8], policy: &Policy) -> Option<BypassReason> {
    if protocol != PROTOCOL_UDP {
        return Some(match Transport::Other(protocol).may_hide_tcp() {
            true => BypassReason::UnknownHeader,
            false => BypassReason::NotTcp,
        });
    }
    if policy.takes_datagrams() {
        return None;
    }
    let Some(udp) = body.first_chunk::<UDP_BYTES>() else { return Some(BypassReason::Truncated) };
    if policy.takes_tunnels() && Tunnel::of_port(half(udp[2], udp[3])).is_some() {
        return None;
    }
    Some(match (UDP_BYTES..=body.len()).contains(&half(udp[4], udp[5]).into()) {
        true => BypassReason::NotTcp,
        false => BypassReason::Malformed,
    })
}

/// A TCP segment with valid lengths.
struct Segment<'a> {
    header: FixedHeader<'a>,
    is_empty: bool,
}

impl<'a> Segment<'a> {
    #[inline]
    fn read(segment: &'a [u8]) -> Result<Self, BypassReason> {
        let header = FixedHeader::of(segment).ok_or(BypassReason::Truncated)?;
        let header_bytes = header.header_bytes();
        if header_bytes < MIN_HEADER_BYTES || header_bytes > segment.len() {
            return Err(BypassReason::Malformed);
        }
        Ok(Self { header, is_empty: header_bytes == segment.len() })
    }

    /// Classifies the segment, whose IP header is valid and has `ip_bytes` bytes. Returns `None` if the full
    /// rules must decide.
    #[inline(always)]
    fn classify(&self, policy: &Policy, ip_bytes: usize) -> Option<PacketClass> {
        let refused = |reason| Some(PacketClass::Refused { reason, ip_bytes });
        let flags = self.header.flags();
        let is_odd = are_odd(flags);
        if is_odd && let Err(reason) = check_flags(flags, self.is_empty, policy) {
            return refused(reason);
        }
        if self.header.urgent() != 0 {
            return refused(BypassReason::Urg);
        }
        if self.is_empty {
            return refused(BypassReason::PureAck);
        }
        (!is_odd).then_some(PacketClass::Ordinary)
    }
}

#[inline]
const fn half(upper: u8, lower: u8) -> u16 {
    u16::from_be_bytes([upper, lower])
}

#[cfg(test)]
mod tests;
