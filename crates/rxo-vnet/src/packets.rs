//! Converts the data that a TUN returns with `IFF_VNET_HDR` (a header and a packet to be segmented or
//! completed) to ordinary packets.

use rxo_frame::{ChecksumStatus, LinkKind};
use rxo_wire::build::BuildError;
use rxo_wire::checksum::{self, Summer};
use rxo_wire::segmentation::{Checksums, Segments};

use crate::{Invalid, VNET_HEADER_BYTES, VnetHeader, segments};

/// The packets in the data of one read from a TUN: the segments of a GSO frame, or the packet itself; see
/// [`packets`].
#[derive(Clone, Debug)]
pub struct Packets<'f> {
    rest: Rest<'f>,
    summer: Summer,
}

#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one value at a time, on the stack: nothing here allocates"
)]
enum Rest<'f> {
    Segments(Segments<'f>),
    /// A single packet, with start and offset of a checksum that is to be completed; `None` if its checksum
    /// is complete.
    One(&'f [u8], Option<(u16, u16)>),
    Nothing,
}

/// Parses the data of one read from a TUN: a header of [`VNET_HEADER_BYTES`], and an IP packet. Yields packets as
/// a network carries them, TCP or UDP, with complete checksums. Allocates nothing. Copies bytes only in
/// [`Packets::next_into`].
///
/// # Errors
/// [`Invalid`] if the header does not match the packet.
///
/// # Examples
/// ```
/// use rxo_vnet::{VNET_HEADER_BYTES, packets};
/// # let from_tun = [&[0; VNET_HEADER_BYTES][..], &[0x45, 0, 0, 20], &[0; 16]].concat();
///
/// let mut packets = packets(&from_tun)?;
/// let mut packet = [0; 65_535];
/// while let Some(bytes) = packets.next_into(&mut packet)? {
///     // Send `packet[..bytes]`.
/// #   assert_eq!(bytes, 20);
/// }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn packets(from_tun: &[u8]) -> Result<Packets<'_>, Invalid> {
    let header = VnetHeader::read(from_tun).ok_or(Invalid::NoHeader)?;
    let packet = from_tun.get(VNET_HEADER_BYTES..).unwrap_or_default();
    let summer = Summer::detect();
    let (checksum, gso) = header.checked(LinkKind::RawIp, packet)?;
    let rest = match (checksum, gso) {
        (_, Some(gso)) => {
            let checksums = Checksums::Complete(summer);
            Rest::Segments(segments(LinkKind::RawIp, packet, (checksum, gso), checksums)?)
        }
        (ChecksumStatus::Partial { start, offset }, None) => {
            Rest::One(packet, Some((start, offset)))
        }
        _ => Rest::One(packet, None),
    };
    Ok(Packets { rest, summer })
}

impl Packets<'_> {
    /// Returns the number of packets that [`Packets::next_into`] has not returned yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        match &self.rest {
            Rest::Segments(segments) => segments.remaining(),
            Rest::One(..) => 1,
            Rest::Nothing => 0,
        }
    }

    /// Writes the next packet at the start of `out` and returns its length in bytes. `None` after the last
    /// packet.
    ///
    /// # Errors
    /// [`BuildError::NoRoom`] if the packet does not fit into `out`. The packet is not lost: the next call
    /// returns it again.
    pub fn next_into(&mut self, out: &mut [u8]) -> Result<Option<usize>, BuildError> {
        let (packet, partial) = match &mut self.rest {
            Rest::Segments(segments) => return segments.next_into(out),
            Rest::One(packet, partial) => (*packet, *partial),
            Rest::Nothing => return Ok(None),
        };
        let (needed, given) = (packet.len(), out.len());
        let to = out.get_mut(..needed).ok_or(BuildError::NoRoom { needed, given })?;
        to.copy_from_slice(packet);
        if let Some((start, offset)) = partial {
            complete(to, start.into(), offset.into(), self.summer);
        }
        self.rest = Rest::Nothing;
        Ok(Some(needed))
    }
}

/// Completes the partial checksum of `packet`, whose checksum field is at `start + offset`. The caller must have
/// validated this position.
fn complete(packet: &mut [u8], start: usize, offset: usize, summer: Summer) {
    let Some(sum) = checksum::complete(packet, start, offset, summer) else { return };
    if let Some(field) = packet.get_mut(start + offset..start + offset + 2) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

/// Returns the four bytes before each packet of a macOS `utun`: the address family of the IP `packet`,
/// `AF_INET` (2) or `AF_INET6` (30), big-endian. `None` if it is not IP. WinTUN has no such prefix.
///
/// # Examples
/// ```
/// use rxo_vnet::utun_prefix;
///
/// assert_eq!(utun_prefix(&[0x45, 0, 0, 20]), Some([0, 0, 0, 2]));
/// assert_eq!(utun_prefix(&[]), None);
/// ```
#[must_use]
pub const fn utun_prefix(packet: &[u8]) -> Option<[u8; 4]> {
    match packet.first() {
        Some(0x40..=0x4f) => Some([0, 0, 0, 2]),
        Some(0x60..=0x6f) => Some([0, 0, 0, 30]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    use rxo_wire::build::{Ipv4Header, Ipv6Header, TcpHeader, UdpHeader};
    use rxo_wire::checksum::verify_transport;
    use rxo_wire::parse_ip;

    /// Builds the largest packet of this protocol, with a partial checksum at this offset of the transport
    /// header. The payload bytes count up.
    fn largest(headers: usize, ip: usize, protocol: u8, offset: usize, write: Write) -> Vec<u8> {
        let longest = if ip == 40 { 40 + 65_535 } else { 65_535 };
        let mut bytes = std::vec![0; VNET_HEADER_BYTES + longest];
        let (header, packet) = bytes.split_at_mut(VNET_HEADER_BYTES);
        write(packet);
        packet[headers..].iter_mut().zip(0_usize..).for_each(|(byte, at)| *byte = at as u8);
        let parsed = parse_ip(packet).unwrap();
        let seed = checksum::pseudo_header(&parsed.key, protocol, (longest - ip) as u32).fold();
        packet[ip + offset..ip + offset + 2].copy_from_slice(&seed.to_be_bytes());
        header[0] = 1;
        for (at, value) in [(6, ip as u16), (8, offset as u16)] {
            header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    /// A function that writes the headers of a packet that fills these bytes.
    type Write = fn(&mut [u8]);

    /// Returns the headers of the only packet in these bytes, and asserts that its payload counts up.
    fn headers_of(from_tun: &[u8], headers: usize) -> Vec<u8> {
        let (mut packets, mut out) = (packets(from_tun).unwrap(), std::vec![0; 65_535 + 40]);
        let bytes = packets.next_into(&mut out).unwrap().unwrap();
        assert_eq!(bytes, from_tun.len() - VNET_HEADER_BYTES);
        assert!(out[headers..bytes].iter().zip(0_usize..).all(|(byte, at)| *byte == at as u8));
        assert_eq!(packets.next_into(&mut out).unwrap(), None);
        out[..headers].to_vec()
    }

    fn v4(protocol: u8, packet: &mut [u8]) -> &mut [u8] {
        let payload_bytes = packet.len() - 20;
        Ipv4Header { protocol, payload_bytes, ..Ipv4Header::default() }.write(packet).unwrap()
    }

    fn v6(next_header: u8, packet: &mut [u8]) -> &mut [u8] {
        let payload_bytes = packet.len() - 40;
        let [source, destination] =
            [1, 2].map(|n| core::net::Ipv6Addr::new(0xfd, 0, 0, 0, 0, 0, 0, n));
        let ip =
            Ipv6Header { next_header, payload_bytes, source, destination, ..Ipv6Header::default() };
        ip.write(packet).unwrap()
    }

    fn tcp(segment: &mut [u8]) {
        TcpHeader::default().write(segment).unwrap();
    }

    fn udp(datagram: &mut [u8]) {
        let payload_bytes = datagram.len() - 8;
        UdpHeader { source_port: 443, destination_port: 50_000, payload_bytes }
            .write(datagram)
            .unwrap();
    }

    /// Builds a header and a TCP packet over IPv4 with `payload` bytes, a partial checksum and a wrong
    /// `hdr_len`.
    fn from_tun(gso_type: u8, payload: usize, size: u16) -> Vec<u8> {
        let mut bytes = std::vec![0; VNET_HEADER_BYTES + 40 + payload];
        let (header, packet) = bytes.split_at_mut(VNET_HEADER_BYTES);
        let ip = Ipv4Header { protocol: 6, payload_bytes: 20 + payload, ..Ipv4Header::default() };
        TcpHeader::default().write(ip.write(packet).unwrap()).unwrap();
        let parsed = parse_ip(packet).unwrap();
        let seed = checksum::pseudo_header(&parsed.key, 6, 20 + payload as u32).fold();
        packet[36..38].copy_from_slice(&seed.to_be_bytes());
        header[0] = 1;
        header[1] = gso_type;
        for (at, value) in [(2, 9_999), (4, size), (6, 20), (8, 16)] {
            header[at..at + 2].copy_from_slice(&u16::to_ne_bytes(value));
        }
        bytes
    }

    fn lengths(from_tun: &[u8]) -> Result<Vec<usize>, Invalid> {
        let (mut packets, mut out, mut lengths) = (packets(from_tun)?, [0; 65_535], Vec::new());
        while let Some(bytes) = packets.next_into(&mut out).unwrap() {
            let parsed = parse_ip(&out[..bytes]).unwrap();
            assert!(verify_transport(&parsed, &out[..bytes], Summer::detect()));
            lengths.push(bytes);
        }
        assert_eq!(packets.remaining(), 0);
        Ok(lengths)
    }

    #[test]
    fn a_gso_frame_is_segmented_whatever_its_header_length_says() {
        assert_eq!(lengths(&from_tun(1, 2_500, 1_000)), Ok([1_040, 1_040, 540].to_vec()));
    }

    #[test]
    fn a_partial_checksum_is_completed() {
        assert_eq!(lengths(&from_tun(0, 100, 0)), Ok([140].to_vec()));
    }

    /// A device without offloads, such as WinTUN or utun, receives the largest IP packet with a complete
    /// checksum.
    #[test]
    fn the_largest_packet_has_a_complete_checksum() {
        let mut bytes = from_tun(0, 65_535 - 40, 0);
        let payload = &mut bytes[VNET_HEADER_BYTES + 40..];
        payload.iter_mut().zip(0_usize..).for_each(|(byte, at)| *byte = at as u8);
        let (mut packets, mut out) = (packets(&bytes).unwrap(), std::vec![0; 65_535]);
        assert_eq!(packets.next_into(&mut out).unwrap(), Some(65_535));
        let golden = [
            0x45, 0, 0xff, 0xff, 0, 0, 0x40, 0, 0x40, 6, 0x3a, 0xf9, 0, 0, 0, 0, 0, 0, 0,
            0, // IPv4
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0xdf, 0xa6, 0, 0, // TCP
        ];
        assert_eq!(out[..40], golden);
        assert!(out[40..].iter().zip(0_usize..).all(|(byte, at)| *byte == at as u8));
        assert_eq!(packets.next_into(&mut out).unwrap(), None);
    }

    #[test]
    fn the_largest_datagram_has_a_complete_checksum() {
        let bytes = largest(28, 20, 17, 6, |packet| udp(v4(17, packet)));
        let golden = [
            0x45, 0, 0xff, 0xff, 0, 0, 0x40, 0, 0x40, 17, 0x3a, 0xee, 0, 0, 0, 0, 0, 0, 0,
            0, // IPv4
            0x01, 0xbb, 0xc3, 0x50, 0xff, 0xeb, 0x37, 0x77, // UDP
        ];
        assert_eq!(headers_of(&bytes, 28), golden);
    }

    #[test]
    fn the_largest_segment_over_ipv6_has_a_complete_checksum() {
        let bytes = largest(60, 40, 6, 16, |packet| tcp(v6(6, packet)));
        let golden = [
            0x60, 0, 0, 0, 0xff, 0xff, 6, 64, // IPv6
            0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // source
            0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, // destination
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0x0a, 0xcd, 0, 0, // TCP
        ];
        assert_eq!(headers_of(&bytes, 60), golden);
    }

    #[test]
    fn the_largest_datagram_over_ipv6_has_a_complete_checksum() {
        let bytes = largest(48, 40, 17, 6, |packet| udp(v6(17, packet)));
        let golden = [
            0x60, 0, 0, 0, 0xff, 0xff, 17, 64, // IPv6
            0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // source
            0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, // destination
            0x01, 0xbb, 0xc3, 0x50, 0xff, 0xff, 0xea, 0x10, // UDP
        ];
        assert_eq!(headers_of(&bytes, 48), golden);
    }

    #[test]
    fn datagrams_are_segmented_too() {
        let mut bytes = std::vec![0; VNET_HEADER_BYTES + 28 + 250];
        let ip = Ipv4Header { protocol: 17, payload_bytes: 258, ..Ipv4Header::default() };
        let udp = UdpHeader { payload_bytes: 250, ..UdpHeader::default() };
        udp.write(ip.write(&mut bytes[VNET_HEADER_BYTES..]).unwrap()).unwrap();
        bytes[1] = 5;
        bytes[4..6].copy_from_slice(&100_u16.to_ne_bytes());
        assert_eq!(lengths(&bytes), Ok([128, 128, 78].to_vec()));
    }

    #[test]
    fn a_header_that_does_not_fit_its_packet_is_invalid() {
        assert_eq!(lengths(&[0; 9]), Err(Invalid::NoHeader));
        let unknown_kind = from_tun(7, 2_500, 1_000);
        let other_version = from_tun(4, 2_500, 1_000);
        let no_size = from_tun(1, 2_500, 0);
        let datagrams = from_tun(5, 2_500, 1_000);
        for bytes in [unknown_kind, other_version, no_size, datagrams] {
            assert_eq!(lengths(&bytes), Err(Invalid::Gso));
        }
        let mut far = from_tun(0, 100, 0);
        far[6..8].copy_from_slice(&123_u16.to_ne_bytes());
        assert_eq!(lengths(&far), Err(Invalid::Checksum));
    }

    #[test]
    fn a_utun_wants_the_address_family() {
        assert_eq!(utun_prefix(&[0x45]), Some([0, 0, 0, 2]));
        assert_eq!(utun_prefix(&[0x60]), Some([0, 0, 0, 30]));
        assert_eq!((utun_prefix(&[]), utun_prefix(&[0x10])), (None, None));
    }
}
