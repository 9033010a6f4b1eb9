//! The checksums of TCP and UDP, pseudo-header included.

use super::{Sum, Summer};
use crate::{FlowKey, IpVersion, Offsets, PROTOCOL_TCP, PROTOCOL_UDP, Parsed, Transport};

/// The sum of a pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1) for a transport header
/// and payload of `bytes` together. Never 0 for TCP and UDP. Folded, it is the seed that a device
/// expects in the field of a packet whose checksum it shall complete.
///
/// The destination is the one in the IP header: a routing header that still has somewhere to go
/// is not looked into, and such a packet's checksum counts as wrong.
#[inline]
#[must_use]
pub fn pseudo_header(key: &FlowKey, protocol: u8, bytes: u32) -> Sum {
    // A length below 2¹⁶ counts the same in the 16 bits that IPv4 has for it.
    key.address_sum() + Sum::word(u16::from(protocol)) + Sum::long(bytes)
}

/// Whether the checksum of the TCP segment or UDP datagram that `parsed` says stands in `frame` is
/// right. One that its sender did not make (UDP over IPv4, field 0) is right.
///
/// `false` also for a fragment and for every other protocol: what cannot be checked is not shown
/// to be intact. Reads the whole segment.
#[inline]
#[must_use]
pub fn verify_transport(parsed: &Parsed, frame: &[u8], summer: Summer) -> bool {
    match parsed.transport {
        Transport::Tcp(_) => verify_tcp(&parsed.key, parsed.at, frame, summer),
        Transport::Udp(udp) if udp.checksum == 0 => parsed.ip.version == IpVersion::V4,
        Transport::Udp(udp) => {
            let start = parsed.at.transport as usize;
            let datagram = frame.get(start..start + usize::from(udp.length));
            datagram.is_some_and(|it| is_right(&parsed.key, PROTOCOL_UDP, it, summer))
        }
        Transport::Fragment | Transport::Other(_) => false,
    }
}

/// Whether the checksum of a TCP segment is right whose headers in `frame` are at `at` and whose flow is
/// `key`: what [`verify_transport`] says, for a receiver that was told both. Reads the whole segment.
/// `false` if `frame` ends before it.
#[inline]
#[must_use]
pub fn verify_tcp(key: &FlowKey, at: Offsets, frame: &[u8], summer: Summer) -> bool {
    frame.get(at.segment()).is_some_and(|segment| is_right(key, PROTOCOL_TCP, segment, summer))
}

#[inline]
fn is_right(key: &FlowKey, protocol: u8, bytes: &[u8], summer: Summer) -> bool {
    (pseudo_header(key, protocol, bytes.len() as u32) + summer.sum(bytes)).is_valid()
}

/// The checksum to write over the seed at `start + offset` of `packet`: what a device would have
/// done for a packet whose checksum is partial. Sums from `start` to the end of `packet`, so
/// padding must be cut off before.
///
/// A result of 0 is given as 0xffff, which is the same number and does not mean "none" in UDP.
/// `None` when the field is not inside `packet`.
///
/// # Examples
/// ```
/// use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_seed};
/// use rxo_wire::checksum::{self, Summer, verify_transport};
/// use rxo_wire::parse_ip;
///
/// // A packet of Linux on a TAP: the checksum at 20 + 16 is a seed.
/// let ip = Ipv4Header { protocol: 6, payload_bytes: 20, ..Ipv4Header::default() };
/// let mut packet = [0; 40];
/// let segment = ip.write(&mut packet)?;
/// TcpHeader::default().write(segment)?;
/// write_tcp_seed(segment, ip.pseudo_header())?;
///
/// let sum = checksum::complete(&packet, 20, 16, Summer::detect()).ok_or("not inside")?;
/// packet[36..38].copy_from_slice(&sum.to_be_bytes());
/// let parsed = parse_ip(&packet).map_err(|_| "unreadable")?;
/// assert!(verify_transport(&parsed, &packet, Summer::detect()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn complete(packet: &[u8], start: usize, offset: usize, summer: Summer) -> Option<u16> {
    let segment = packet.get(start..)?;
    segment.get(offset..)?.get(..2)?;
    match summer.sum(segment).checksum() {
        0 => Some(u16::MAX),
        checksum => Some(checksum),
    }
}

/// The sum of a TCP segment's payload, from its own checksum: everything adds up to zero, so the
/// payload is what is missing. Reads the header only.
///
/// True only if the segment's checksum is right (verified, not a seed). `None` when `parsed` is
/// not TCP, or `frame` not the frame it was read from.
#[inline]
#[must_use]
pub fn payload_sum(parsed: &Parsed, frame: &[u8]) -> Option<Sum> {
    if !matches!(parsed.transport, Transport::Tcp(_)) {
        return None;
    }
    let header = frame.get(parsed.at.transport_header())?;
    let pseudo = pseudo_header(&parsed.key, PROTOCOL_TCP, parsed.at.segment_bytes());
    Some(Sum::ZERO - (pseudo + Sum::of(header)))
}
