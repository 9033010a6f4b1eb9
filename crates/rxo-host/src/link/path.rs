//! ICMP errors about segments that this host has sent.
//!
//! This module does not verify an error: it only extracts the connection and the sequence number from the
//! quoted packet. TCP uses the sequence number to decide if the error is credible (RFC 5927, section 4).

use std::net::SocketAddr;

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type, IpNumber, LaxIpSlice};
use rxo_wire::{FlowKey, SeqNumber};

/// The report of a router that a packet was larger than the path allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketTooBig {
    /// The flow key of the connection, in the direction in which this host sends.
    pub pair: FlowKey,
    /// The sequence number of the segment that was too large.
    pub seq: SeqNumber,
    /// The largest IP packet that the next link can carry, in bytes, as reported by the router. The size is
    /// estimated if the router reports no MTU (RFC 1191, section 7.1).
    pub mtu: u32,
}

/// The report of a router or host that a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The flow key of the connection, in the direction in which this host sends.
    pub pair: FlowKey,
    /// The sequence number of the segment that was not delivered.
    pub seq: SeqNumber,
    /// `true` if the error is permanent: a hard error of RFC 9293, section 3.9.2.2.
    pub is_hard: bool,
}

/// An ICMP error about a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathError {
    TooBig(PacketTooBig),
    Unreachable(Unreachable),
}

/// Parses an ICMP message whose checksum is right. `None` if the message is not an error about a TCP segment.
pub(super) fn read_v4(message: &Icmpv4Slice<'_>) -> Option<PathError> {
    use DestUnreachableHeader::{FragmentationNeeded, Port, Protocol};
    let kind = message.icmp_type();
    let is_hard = match kind {
        Icmpv4Type::DestinationUnreachable(FragmentationNeeded { next_hop_mtu }) => {
            let quoted = Quoted::read(message.payload())?;
            let mtu = if next_hop_mtu == 0 { plateau(quoted.packet_bytes) } else { next_hop_mtu };
            return Some(quoted.too_big(mtu.into()));
        }
        Icmpv4Type::DestinationUnreachable(Port | Protocol) => true,
        Icmpv4Type::DestinationUnreachable(_)
        | Icmpv4Type::TimeExceeded(_)
        | Icmpv4Type::ParameterProblem(_) => false,
        _ => return None,
    };
    Some(Quoted::read(message.payload())?.unreachable(is_hard))
}

/// Parses an ICMPv6 message whose checksum is right. `None` if the message is not an error about a TCP segment.
pub(super) fn read_v6(message: &Icmpv6Slice<'_>) -> Option<PathError> {
    let is_hard = match message.icmp_type() {
        Icmpv6Type::PacketTooBig { mtu } => {
            return Some(Quoted::read(message.payload())?.too_big(mtu));
        }
        Icmpv6Type::DestinationUnreachable(code) => code == DestUnreachableCode::Port,
        Icmpv6Type::TimeExceeded(_) | Icmpv6Type::ParameterProblem(_) => false,
        _ => return None,
    };
    Some(Quoted::read(message.payload())?.unreachable(is_hard))
}

/// The flow and sequence number in the packet that an ICMP error quotes.
#[derive(Clone, Copy, Debug)]
struct Quoted {
    pair: FlowKey,
    seq: SeqNumber,
    packet_bytes: u16,
}

impl Quoted {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (ip, _) = LaxIpSlice::from_slice(bytes).ok()?;
        let payload = ip.payload();
        if payload.ip_number != IpNumber::TCP || payload.fragmented {
            return None;
        }
        // ICMP guarantees eight bytes after the IP header (RFC 792): ports and sequence number.
        let [a, b, c, d, e, f, g, h] = *payload.payload.first_chunk::<8>()?;
        let sender = SocketAddr::new(ip.source_addr(), u16::from_be_bytes([a, b]));
        let receiver = SocketAddr::new(ip.destination_addr(), u16::from_be_bytes([c, d]));
        let pair = FlowKey::between(sender, receiver)?;
        let seq = SeqNumber(u32::from_be_bytes([e, f, g, h]));
        let packet_bytes = ip.ipv4().map_or(0, |v4| v4.header().total_len());
        Some(Self { pair, seq, packet_bytes })
    }

    const fn too_big(self, mtu: u32) -> PathError {
        PathError::TooBig(PacketTooBig { pair: self.pair, seq: self.seq, mtu })
    }

    const fn unreachable(self, is_hard: bool) -> PathError {
        PathError::Unreachable(Unreachable { pair: self.pair, seq: self.seq, is_hard })
    }
}

/// Returns the next common MTU below `packet_bytes`, for errors of routers older than RFC 1191, which report no
/// MTU.
fn plateau(packet_bytes: u16) -> u16 {
    PLATEAUS.into_iter().find(|size| *size < packet_bytes).unwrap_or(LEAST_PLATEAU)
}

/// Common MTUs in bytes (RFC 1191, section 7.1, table 7-1).
const PLATEAUS: [u16; 9] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296];
const LEAST_PLATEAU: u16 = 68;
