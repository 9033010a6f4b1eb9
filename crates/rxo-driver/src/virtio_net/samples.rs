//! Sample frames for tests.

use std::net::Ipv6Addr;
use std::num::NonZeroU16;

use rxo_frame::{
    ChecksumStatus, Frame, Gather, Gso, GsoKind, GsoTunnel, Instant, Offload, VlanTag,
};
use rxo_wire::build::{EthernetHeader, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader};
use rxo_wire::checksum::pseudo_header;
use rxo_wire::parse;

/// The length of Ethernet, IPv4 and TCP headers.
pub(crate) const HEADERS_BYTES: usize = 14 + 20 + 20;

/// Builds a TCP segment with `payload` bytes; its checksum field contains the pseudo-header's sum.
pub(crate) fn tcp(payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; HEADERS_BYTES + payload];
    let rest = EthernetHeader { ethertype: 0x0800, ..EthernetHeader::default() }
        .write(&mut bytes)
        .unwrap();
    let ip = Ipv4Header { protocol: 6, payload_bytes: 20 + payload, ..Ipv4Header::default() };
    let rest = ip.write(rest).unwrap();
    TcpHeader::default().write(rest).unwrap();
    for (n, byte) in bytes[HEADERS_BYTES..].iter_mut().enumerate() {
        *byte = n as u8;
    }
    let seed = pseudo_header(&parse(&bytes).unwrap().key, 6, 20 + payload as u32);
    bytes[14 + 20 + 16..][..2].copy_from_slice(&seed.fold().to_be_bytes());
    bytes
}

/// The length of Ethernet, IPv4, UDP and VXLAN headers.
pub(crate) const VXLAN_BYTES: usize = 14 + 20 + 8 + 8;

/// Builds a VXLAN packet without outer UDP checksum that contains [`tcp`] with `payload` bytes.
pub(crate) fn vxlan(payload: usize) -> Vec<u8> {
    let inner = tcp(payload);
    let mut bytes = vec![0; VXLAN_BYTES];
    bytes.extend(&inner);
    let link = EthernetHeader { ethertype: 0x0800, ..EthernetHeader::default() };
    let rest = link.write(&mut bytes).unwrap();
    let ip = Ipv4Header { protocol: 17, payload_bytes: 16 + inner.len(), ..Ipv4Header::default() };
    let rest = ip.write(rest).unwrap();
    let udp =
        UdpHeader { source_port: 50_000, destination_port: 4_789, payload_bytes: 8 + inner.len() };
    udp.write(rest).unwrap()[0] = 8;
    bytes
}

/// Describes `bytes` of [`vxlan`] as a kernel does, by the inner headers, as a GSO frame with segments of
/// `size` bytes.
pub(crate) fn large_in_vxlan(bytes: &[u8], size: u16, tunnel: Option<GsoTunnel>) -> Frame<&[u8]> {
    let start = (VXLAN_BYTES + 14 + 20) as u16;
    let size = NonZeroU16::new(size).unwrap();
    let gso = Some(Gso { tunnel, ..Gso::new(GsoKind::TcpV4, size) });
    let checksum = ChecksumStatus::Partial { start, offset: 16 };
    Frame { checksum, gso, ..Frame::new(bytes, Instant::ZERO) }
}

/// The length of Ethernet, IPv6 and TCP headers.
pub(crate) const HEADERS_V6_BYTES: usize = 14 + 40 + 20;

/// Builds a TCP segment over IPv6 with `payload` bytes; its checksum field contains the pseudo-header's sum.
pub(crate) fn tcp_v6(payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; HEADERS_V6_BYTES + payload];
    let rest = EthernetHeader { ethertype: 0x86dd, ..EthernetHeader::default() }
        .write(&mut bytes)
        .unwrap();
    let (source, destination) = (Ipv6Addr::LOCALHOST, Ipv6Addr::from(0xfd00 << 112 | 2));
    let payload_bytes = 20 + payload;
    let ip =
        Ipv6Header { source, destination, next_header: 6, payload_bytes, ..Ipv6Header::default() };
    let rest = ip.write(rest).unwrap();
    TcpHeader::default().write(rest).unwrap();
    for (n, byte) in bytes[HEADERS_V6_BYTES..].iter_mut().enumerate() {
        *byte = n as u8;
    }
    let seed = pseudo_header(&parse(&bytes).unwrap().key, 6, payload_bytes as u32);
    bytes[14 + 40 + 16..][..2].copy_from_slice(&seed.fold().to_be_bytes());
    bytes
}

/// Describes `bytes` like [`large`], but over IPv6.
pub(crate) fn large_v6(bytes: &[u8]) -> Frame<&[u8]> {
    let gso = large(bytes).gso.map(|gso| Gso { kind: GsoKind::TcpV6, ..gso });
    Frame { checksum: PARTIAL_V6, gso, ..Frame::new(bytes, Instant::ZERO) }
}

/// The partial checksum of a TCP segment over IPv6.
pub(crate) const PARTIAL_V6: ChecksumStatus = ChecksumStatus::Partial { start: 54, offset: 16 };

/// The length of Ethernet, IPv4 and UDP headers.
pub(crate) const DATAGRAM_HEADERS_BYTES: usize = 14 + 20 + 8;

/// Builds a UDP datagram with `payload` bytes; its checksum field contains the pseudo-header's sum.
pub(crate) fn udp(payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; DATAGRAM_HEADERS_BYTES + payload];
    let rest = EthernetHeader { ethertype: 0x0800, ..EthernetHeader::default() }
        .write(&mut bytes)
        .unwrap();
    let ip = Ipv4Header { protocol: 17, payload_bytes: 8 + payload, ..Ipv4Header::default() };
    let rest = ip.write(rest).unwrap();
    let header = UdpHeader { source_port: 7, destination_port: 8, payload_bytes: payload };
    header.write(rest).unwrap();
    for (n, byte) in bytes[DATAGRAM_HEADERS_BYTES..].iter_mut().enumerate() {
        *byte = n as u8;
    }
    let seed = pseudo_header(&parse(&bytes).unwrap().key, 17, 8 + payload as u32);
    bytes[14 + 20 + 6..][..2].copy_from_slice(&seed.fold().to_be_bytes());
    bytes
}

/// Describes `bytes` as a UDP GSO frame with a partial checksum and datagrams of 1,000 bytes.
pub(crate) fn large_udp(bytes: &[u8]) -> Frame<&[u8]> {
    let checksum = ChecksumStatus::Partial { start: 34, offset: 6 };
    let gso = large(bytes).gso.map(|gso| Gso { kind: GsoKind::Udp, ..gso });
    Frame { checksum, gso, ..Frame::new(bytes, Instant::ZERO) }
}

/// Describes `bytes` as a TCP GSO frame with a partial checksum and segments of 1,000 bytes.
pub(crate) fn large(bytes: &[u8]) -> Frame<&[u8]> {
    let checksum = ChecksumStatus::Partial { start: 34, offset: 16 };
    let size = NonZeroU16::new(1_000).unwrap();
    let gso = Some(Gso::new(GsoKind::TcpV4, size));
    Frame { checksum, gso, ..Frame::new(bytes, Instant::ZERO) }
}

/// A packet that claims to consist of seven frames.
#[derive(Clone, Copy)]
pub(crate) struct OfSeven<'a>(pub(crate) Frame<&'a [u8]>);

impl<'a> Gather<'a> for OfSeven<'a> {
    fn offload(self) -> Offload {
        self.0.offload()
    }

    fn vlan(self) -> Option<VlanTag> {
        None
    }

    fn byte_len(self) -> usize {
        self.0.byte_len()
    }

    fn for_each_slice(self, visit: impl FnMut(&'a [u8])) {
        self.0.for_each_slice(visit);
    }

    fn frame_count(self) -> usize {
        7
    }

    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>)) {
        self.0.for_each_frame(visit);
    }
}
