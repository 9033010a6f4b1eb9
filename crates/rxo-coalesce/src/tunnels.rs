//! TCP inside VXLAN and Geneve: the rules for the outer headers of a segment that may be coalesced.
//!
//! Separate from the rules for TCP, which apply unchanged to the inner headers. The rules are those of Linux
//! (`net/ipv4/af_inet.c`, `drivers/net/vxlan`, `drivers/net/geneve.c`): all bytes before the inner IP header
//! are equal, except for lengths, checksums and the outer IPv4 identification, which is constant or
//! increments. Contract: segmentation of the aggregate restores the outer headers, too.

use rxo_frame::{GsoTunnel, UdpTunnel};
use rxo_wire::checksum::Sum;
use rxo_wire::tunnel::{Carrier, Inside, Tunnel};
use rxo_wire::udp::{CHECKSUM_AT, LENGTH_AT};
use rxo_wire::{IpVersion, PROTOCOL_TCP, PROTOCOL_UDP, Parsed, Transport};

use crate::candidate::{MAX_HEADER_BYTES, check_ip, is_marked_ce};
use crate::{BypassReason, Candidate, CeRule, FlushReason, Held, Policy};

/// A parsed tunnel packet: its inner headers, and the outer ones in two forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tunnelled {
    pub(crate) inside: Inside,
    pub(crate) around: Around,
    pub(crate) named: GsoTunnel,
}

/// The offsets of the outer IP and UDP headers and of the inner IP header, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    pub(crate) network: usize,
    pub(crate) transport: usize,
    inner: usize,
    is_v6: bool,
    pub(crate) has_checksum: bool,
}

const V4_BYTES: u8 = 20;
const V6_BYTES: u8 = 40;

/// Parses the packet inside the datagram `outer` of `tunnel`. The rules for the inner packet are not applied.
///
/// # Errors
/// The first rule that the outer headers break. The flow inside is then uncertain.
pub(crate) fn read(
    frame: &[u8],
    outer: &Parsed,
    tunnel: Tunnel,
    policy: &Policy,
) -> Result<Tunnelled, BypassReason> {
    if !outer.ip.checksum_ok {
        return Err(BypassReason::BadIpChecksum);
    }
    if outer.ip.has_options || outer.ip.reserved_bit {
        check_ip(outer, policy)?;
        return Err(BypassReason::IpOptions);
    }
    let Transport::Udp(udp) = outer.transport else { return Err(BypassReason::UdpTunnel) };
    let inside = tunnel.inside(frame, outer).ok_or(BypassReason::UdpTunnel)?;
    if u32::from(udp.length) != outer.at.segment_bytes() || inside.parsed.at.end != outer.at.end {
        return Err(BypassReason::UdpLength);
    }
    let named = name(outer, &inside);
    let around = Around::of(named).ok_or(BypassReason::UdpTunnel)?;
    Ok(Tunnelled { inside, around, named })
}

/// Returns the description of the tunnel for sinks.
fn name(outer: &Parsed, inside: &Inside) -> GsoTunnel {
    let offset = |at: u32| u8::try_from(at).unwrap_or(u8::MAX);
    GsoTunnel::udp(UdpTunnel {
        outer_transport: offset(outer.at.transport),
        inner_network: offset(inside.parsed.at.network),
        is_outer_v6: outer.ip.version == IpVersion::V6,
        has_checksum: matches!(inside.carrier, Carrier::Udp { has_checksum: true }),
    })
}

/// Judges the outer headers of a segment whose inner headers break no static rule.
///
/// # Errors
/// The first rule that the outer headers break.
pub(crate) fn outer_rules(
    outer: &Parsed,
    inner: &Parsed,
    policy: &Policy,
) -> Result<(), BypassReason> {
    if inner.at.payload as usize > MAX_HEADER_BYTES {
        return Err(BypassReason::UdpTunnel);
    }
    // A receiver that decapsulates the packet copies the CE mark of the outer header (RFC 6040).
    if is_marked_ce(&outer.ip) && policy.ce == CeRule::Bypass {
        return Err(BypassReason::CeMark);
    }
    if outer.at.end - outer.at.network > policy.max_bytes {
        return Err(BypassReason::TooLarge);
    }
    Ok(())
}

impl Around {
    /// Returns the offsets of the headers of a packet in `tunnel`; `None` if a virtio header cannot describe the
    /// tunnel.
    pub(crate) fn of(tunnel: GsoTunnel) -> Option<Self> {
        let UdpTunnel { outer_transport, inner_network, is_outer_v6, has_checksum } =
            tunnel.as_udp()?;
        let ip_bytes = if is_outer_v6 { V6_BYTES } else { V4_BYTES };
        Some(Self {
            network: outer_transport.checked_sub(ip_bytes)?.into(),
            transport: outer_transport.into(),
            inner: inner_network.into(),
            is_v6: is_outer_v6,
            has_checksum,
        })
    }

    /// Writes the length of the packet into the start of an outer IP header; for IPv4 also the identification
    /// of `first` and the header checksum.
    pub(crate) fn write_ip(self, ip: &mut [u8; 20], first: &[u8], packet_bytes: u16) {
        let Some(id) = self.id(first) else {
            let payload_bytes = packet_bytes.saturating_sub(V6_BYTES.into());
            [ip[4], ip[5]] = payload_bytes.to_be_bytes();
            return;
        };
        [ip[2], ip[3]] = packet_bytes.to_be_bytes();
        [ip[4], ip[5]] = id.to_be_bytes();
        [ip[10], ip[11]] = [0, 0];
        [ip[10], ip[11]] = Sum::of(ip).checksum().to_be_bytes();
    }

    /// Returns the outer IPv4 identification; `None` for IPv6 or a truncated frame.
    pub(crate) fn id(self, frame: &[u8]) -> Option<u16> {
        let field = frame.get(self.network + 4..).filter(|_| !self.is_v6)?;
        field.first_chunk().map(|id| u16::from_be_bytes(*id))
    }

    /// Returns the sum of the outer pseudo-header for a datagram of `datagram_bytes` bytes.
    pub(crate) fn pseudo_header(self, frame: &[u8], datagram_bytes: u32) -> Sum {
        let addresses = if self.is_v6 { 8..40 } else { 12..20 };
        let addresses = addresses.start + self.network..addresses.end + self.network;
        let addresses = frame.get(addresses).map_or(Sum::ZERO, Sum::of);
        addresses + Sum::word(PROTOCOL_UDP.into()) + Sum::long(datagram_bytes)
    }

    /// Returns `true` if the outer headers of two frames differ at most in lengths, checksums and IPv4
    /// identification.
    fn is_compatible(self, last: &[u8], next: &[u8]) -> bool {
        let Self { network, transport, inner, .. } = self;
        let (length_at, rest_at) = if self.is_v6 { (4, 6) } else { (2, 12) };
        let equal = |from: usize, to: usize| last.get(from..to) == next.get(from..to);
        // Flags and fragment offset, hop limit and protocol.
        (self.is_v6 || equal(network + 6, network + 10))
            && equal(0, network + length_at)
            && equal(network + rest_at, transport + LENGTH_AT)
            && equal(transport + CHECKSUM_AT + 2, inner)
    }

    /// Returns `true` if the outer headers of the next packet only continue the outer headers of the held
    /// packets. `frames` contains the first held frame, the last held frame and the next frame. The last held
    /// frame and the next frame must have equal lengths and matching inner headers.
    pub(crate) fn is_continued(self, held: &Held, frames: [&[u8]; 3], policy: &Policy) -> bool {
        let [first, last, next] = frames;
        let checksum_at = self.transport + CHECKSUM_AT;
        let has_checksum =
            next.get(checksum_at..checksum_at + 2).is_some_and(|field| field != [0; 2]);
        let ip = next.get(self.network..self.transport).unwrap_or_default();
        let length_at = if self.is_v6 { 4 } else { 2 };
        let equal = |at: usize| last.get(at..at + 2) == next.get(at..at + 2);
        has_checksum == self.has_checksum
            && equal(self.network + length_at)
            && equal(self.transport + LENGTH_AT)
            && self.is_compatible(last, next)
            && self.id_follows(held, first, last, next)
            && (self.is_v6 || Sum::of(ip).is_valid())
            && self.packet_bytes(held) + held.last_payload_bytes <= policy.max_bytes
    }

    /// Returns `true` if the outer checksum of `next` is right or absent. The headers of `next` must match those
    /// of the last packet of `held`, and its inner checksum must be right.
    pub(crate) fn has_right_checksum(self, held: &Held, next: &[u8]) -> bool {
        let end = u32::from(held.header_bytes) + held.last_payload_bytes;
        let headers = next.get(self.transport..usize::from(held.at.transport()));
        let sum = self.pseudo_header(next, end - self.transport as u32)
            + headers.map_or(Sum::ZERO, Sum::of)
            - held.pseudo_header(PROTOCOL_TCP, held.last_payload_bytes);
        !self.has_checksum || sum.is_valid()
    }

    /// Returns the length of the merged outer packet so far, in bytes.
    fn packet_bytes(self, held: &Held) -> u32 {
        u32::from(held.header_bytes) - self.network as u32 + held.payload_bytes
    }

    /// Returns `true` if the outer identification continues the pattern of the held packets: constant, which
    /// needs DF, or incrementing. `first` and `last` are the first and last held frame.
    fn id_follows(self, held: &Held, first: &[u8], last: &[u8], next: &[u8]) -> bool {
        let (Some(before), Some(id)) = (self.id(last), self.id(next)) else { return true };
        let has_df = next.get(self.network + 6).is_some_and(|flags| flags & 0x40 != 0);
        let (stays, counts) = (id == before && has_df, id == before.wrapping_add(1));
        match self.id(first) {
            _ if held.segments == 1 => stays || counts,
            first if first == Some(before) => stays,
            _ => counts,
        }
    }
}

impl Tunnelled {
    /// Returns the rule for which the outer headers keep this candidate from joining `held`; `None` if they
    /// match. `first` and `last` are the first and last held frame. The inner headers must match.
    pub(crate) fn mismatch(
        &self,
        (held, first, last): (&Held, &[u8], &[u8]),
        candidate: &Candidate<'_>,
        policy: &Policy,
    ) -> Option<FlushReason> {
        let around = self.around;
        if held.around != self.named || !around.is_compatible(last, candidate.bytes) {
            return Some(FlushReason::Link);
        }
        if !around.id_follows(held, first, last, candidate.bytes) {
            return Some(FlushReason::IpId);
        }
        let bytes = around.packet_bytes(held) + candidate.payload_bytes();
        (bytes > policy.max_bytes).then_some(FlushReason::ByteLimit)
    }
}
