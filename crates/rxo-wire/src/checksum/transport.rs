//! The checksums of TCP and UDP, including the pseudo-header.

use super::{Sum, Summer};
use crate::{FlowKey, IpVersion, Offsets, PROTOCOL_TCP, PROTOCOL_UDP, Parsed, Transport};

/// Returns the sum of the pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1) for a transport header
/// and payload of `bytes` bytes together. Never 0 for TCP and UDP. If a device completes the checksum of a
/// packet, it expects the folded sum in the checksum field.
///
/// The destination address is that of the IP header. A packet with an unfinished routing header has another
/// final destination, so its checksum counts as wrong.
#[inline]
#[must_use]
pub fn pseudo_header(key: &FlowKey, protocol: u8, bytes: u32) -> Sum {
    // IPv4 has a length of 16 bits; a length below 2¹⁶ gives the same sum either way.
    key.address_sum() + Sum::word(u16::from(protocol)) + Sum::long(bytes)
}

/// Returns `true` if the checksum of the TCP segment or UDP datagram in `frame`, which `parsed` describes, is
/// right. A UDP datagram over IPv4 without a checksum (field 0) counts as right.
///
/// Returns `false` for a fragment and for any other protocol, because neither can be verified. Reads the whole segment.
#[inline]
#[must_use]
pub fn verify_transport(parsed: &Parsed, frame: &[u8], summer: Summer) -> bool {
    match parsed.transport {
        Transport::Tcp(_) => verify_tcp(&parsed.key, parsed.at, frame, summer),
        Transport::Udp(udp) if udp.checksum == 0 => parsed.ip.version == IpVersion::V4,
        Transport::Udp(udp) => {
            let start = parsed.at.transport as usize;
            // The UDP length, not that of the packet, delimits the summed bytes.
            let datagram = frame.get(start..start + usize::from(udp.length));
            datagram.is_some_and(|it| is_right(&parsed.key, PROTOCOL_UDP, it, summer))
        }
        Transport::Fragment | Transport::Other(_) => false,
    }
}

/// Returns `true` if the checksum of the TCP segment in `frame` is right; its headers are at `at`, and its flow
/// is `key`. Equivalent to [`verify_transport`], for a caller without a [`Parsed`]. Reads the whole segment.
/// `false` if `frame` is too short.
#[inline]
#[must_use]
pub fn verify_tcp(key: &FlowKey, at: Offsets, frame: &[u8], summer: Summer) -> bool {
    frame.get(at.segment()).is_some_and(|segment| is_right(key, PROTOCOL_TCP, segment, summer))
}

#[inline]
fn is_right(key: &FlowKey, protocol: u8, bytes: &[u8], summer: Summer) -> bool {
    (pseudo_header(key, protocol, bytes.len() as u32) + summer.sum(bytes)).is_valid()
}

/// Computes the checksum for a packet whose checksum is partial, as a device would: sums from `start` to the
/// end of `packet` and returns the value to write at `start + offset`. The caller must cut off padding first.
///
/// Returns 0xffff instead of 0: both are the same number in one's complement, but in UDP 0 means "no checksum".
/// `None` if the field is not inside `packet`.
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
