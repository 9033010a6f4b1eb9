//! Parses the datagrams of VXLAN and Geneve, field by field.

use rxo_frame::{Frame, LinkKind};

use super::checksum::transport_checksum;
use super::read::{Content, Reading, Segment, read};

const TCP: u8 = 6;
const UDP: u8 = 17;
const GENEVE: u16 = 6081;
/// Ports of VXLAN: the standard one, and Linux's old one.
const VXLAN: [u16; 2] = [4789, 8472];

/// The outer packet of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outer {
    /// Headers of the outer packet. Its payload begins with the tunnel's header.
    pub segment: Segment,
    /// All bytes before the inner IP header, with zeros for fields that differ between packets.
    pub alike: Vec<u8>,
    /// `true` if the outer datagram has a checksum.
    pub has_checksum: bool,
    /// `true` if the outer checksum is right once the inner one is, or there is none.
    pub checksum_ok: bool,
    /// `true` if the inner packet, the datagram and the outer packet end at the same byte.
    pub fits: bool,
}

/// Parses `frame`, and if it is a datagram to the port of a tunnel, the packet inside.
#[must_use]
pub fn read_inside<B: AsRef<[u8]>>(frame: &Frame<B>, link: LinkKind) -> Reading {
    let outer = match read(frame, link) {
        Reading::Datagram(outer) if is_tunnel(outer.ports.1) => *outer,
        other => return other,
    };
    let unreadable = |outer| {
        let outer = Outer { segment: outer, ..Outer::default() };
        Reading::Tunnel(Box::new(outer), Content::Unreadable)
    };
    let Some((bytes, tunnel)) = header(&outer) else { return unreadable(outer) };
    let base = outer.payload_at + bytes;
    let inner = Frame::new(outer.payload[bytes..].to_vec(), frame.arrived_at);
    let content = match read(&inner, LinkKind::Ethernet) {
        Reading::Nothing(_) | Reading::Addresses(..) => return unreadable(outer),
        Reading::Fragment(_) => Err(Content::Fragment),
        Reading::Unknown(_) => Err(Content::Unknown),
        Reading::OtherProtocol | Reading::Datagram(_) => Err(Content::Other),
        Reading::Segment(segment) => Ok(segment),
        Reading::Tunnel(..) => unreachable!("only one tunnel is looked into"),
    };
    let network = inner_network(&inner.bytes);
    let mut around = Outer {
        alike: alike(&frame.bytes()[..base + network], &outer),
        has_checksum: outer.checksum != 0,
        checksum_ok: outer.checksum == 0,
        fits: inner_end(&inner.bytes, network) == inner.bytes.len()
            && outer.udp_length == Some(outer.payload.len() + 8),
        segment: outer,
    };
    match content {
        Err(content) => Reading::Tunnel(Box::new(around), content),
        Ok(mut segment) => {
            around.checksum_ok |= is_right(frame.bytes(), &around.segment, base, &segment);
            segment.ends.vlans.clear();
            segment.ends.tunnel = Some(tunnel);
            segment.device_tag = around.segment.device_tag;
            segment.link = vec![0; base + network];
            segment.network_at += base;
            segment.transport_at += base;
            segment.payload_at += base;
            segment.outer = Some(Box::new(around));
            Reading::Segment(segment)
        }
    }
}

fn is_tunnel(port: u16) -> bool {
    port == GENEVE || VXLAN.contains(&port)
}

/// Returns the length of the tunnel's header, and the tunnel's port and network identifier. `None` if the
/// header is unusual, or no Ethernet frame follows.
fn header(outer: &Segment) -> Option<(usize, (u16, u32))> {
    let bytes = outer.payload.get(..8)?;
    let network = u32::from_be_bytes([0, bytes[4], bytes[5], bytes[6]]);
    if outer.odd_extensions {
        return None;
    }
    if outer.ports.1 != GENEVE {
        return (bytes[0] == 8).then_some((8, (VXLAN[0], network)));
    }
    let length = 8 + usize::from(bytes[0] % 64) * 4;
    let is_ethernet = bytes[2..4] == [0x65, 0x58];
    let is_usual = bytes[0] < 64 && bytes[1] < 64 && length <= outer.payload.len();
    (is_ethernet && is_usual).then_some((length, (GENEVE, network)))
}

/// Returns the offset of the IP header in a valid inner frame.
fn inner_network(bytes: &[u8]) -> usize {
    let mut at = 14;
    while at < 22 && matches!(bytes.get(at - 2..at), Some([0x81, 0x00] | [0x88, 0xa8])) {
        at += 4;
    }
    at
}

fn inner_end(bytes: &[u8], at: usize) -> usize {
    let half = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    if bytes[at] >> 4 == 4 { at + half(at + 2) } else { at + 40 + half(at + 4) }
}

/// Returns the bytes with zeros for lengths, checksums and the IPv4 ID.
fn alike(bytes: &[u8], outer: &Segment) -> Vec<u8> {
    let (ip, udp) = (outer.network_at, outer.transport_at);
    let left_out = match outer.v6 {
        true => vec![ip + 4..ip + 6, udp + 4..udp + 8],
        false => vec![ip + 2..ip + 6, ip + 10..ip + 12, udp + 4..udp + 8],
    };
    let mut bytes = bytes.to_vec();
    left_out.into_iter().for_each(|range| bytes[range].fill(0));
    bytes
}

/// Returns `true` if the outer checksum is right after the inner checksum has been corrected.
fn is_right(frame: &[u8], outer: &Segment, base: usize, inner: &Segment) -> bool {
    let end = outer.payload_at + outer.payload.len();
    let mut bytes = frame[..end].to_vec();
    let (start, end) = (base + inner.transport_at, base + inner.payload_at + inner.payload.len());
    bytes[start + 16..start + 18].fill(0);
    let right = transport_checksum(&inner.ends.addresses, TCP, &bytes[start..end]);
    bytes[start + 16..start + 18].copy_from_slice(&right.to_be_bytes());
    transport_checksum(&outer.ends.addresses, UDP, &bytes[outer.transport_at..]) == 0
}
