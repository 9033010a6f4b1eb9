//! Parses the headers of a frame, field by field, with literal offsets.

use rxo_frame::{Frame, LinkKind};

use super::Outer;
use super::checksum::{internet_checksum, transport_checksum};

mod extensions;
#[cfg(test)]
mod tests;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Protocols that carry no TCP segment between the same hosts: ICMP for both versions, IGMP, IP
/// tunnels (4, 41, 47), no next header (59), OSPF, PIM, VRRP, SCTP and UDP-Lite.
const KNOWN: &[u8] = &[1, 58, 2, 4, 41, 47, 59, 89, 103, 112, 132, 136];
const SACK: u8 = 5;
const TIMESTAMP: u8 = 8;

/// Kind of a frame, as far as ordering and coalescing depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Not IP, or its addresses are unreadable. It belongs to no flow.
    Nothing(Fault),
    /// An IP packet with invalid lengths. It may belong to any flow between its addresses.
    Addresses(Ends, Fault),
    /// A fragment. It may belong to any flow between its addresses, together with other fragments.
    Fragment(Ends),
    /// A packet with an unsupported header. It may belong to any flow between its addresses.
    Unknown(Ends),
    /// A valid IP packet of a protocol other than TCP and UDP.
    OtherProtocol,
    /// A TCP segment.
    Segment(Box<Segment>),
    /// A UDP datagram. Its TCP fields are 0.
    Datagram(Box<Segment>),
    /// A tunnel's packet that carries no TCP segment; only [`super::read_inside`] parses tunnels.
    Tunnel(Box<Outer>, Content),
}

/// Content of a tunnel's packet that is no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Unreadable content, or no IP packet. It may belong to any flow.
    Unreadable,
    /// A fragment.
    Fragment,
    /// A packet with an unsupported header.
    Unknown,
    /// A packet of a protocol other than TCP.
    Other,
}

/// The reason why a frame was not parsed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The frame is not IP.
    NotIp,
    /// The frame is shorter than its headers require or state.
    Truncated,
    /// The headers contradict each other.
    Malformed,
}

/// The two hosts of a packet and their VLANs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ends {
    /// Source and destination address: 8 or 32 bytes.
    pub addresses: Vec<u8>,
    /// VLAN identifiers in the frame's bytes, outermost first. A third one counts as 0.
    pub vlans: Vec<u16>,
    /// VLAN identifier that the device removed from the frame; `None` if it removed none.
    pub device_vlan: Option<u16>,
    /// Port and network identifier of the tunnel, which replace the inner VLANs; `None` outside tunnels.
    pub tunnel: Option<(u16, u32)>,
}

/// The fields of a TCP segment, or of a UDP datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Hosts and VLANs.
    pub ends: Ends,
    /// Source and destination ports.
    pub ports: (u16, u16),
    /// All bytes before the IP header.
    pub link: Vec<u8>,
    /// Tag that the device removed, with its priority; `None` if it removed none.
    pub device_tag: Option<(u16, u16)>,
    /// `true` for IPv6.
    pub v6: bool,
    /// Type of service, or traffic class (v6).
    pub traffic_class: u8,
    /// Time to live, or hop limit (v6).
    pub hop_limit: u8,
    /// Flow label (v6).
    pub flow_label: u32,
    /// Identification (v4).
    pub id: u16,
    /// DF (v4).
    pub dont_fragment: bool,
    /// The reserved bit (v4).
    pub reserved_bit: bool,
    /// IPv4 options; for IPv6 the type of the first extension header, and all extension headers.
    pub between: Vec<u8>,
    /// `true` if there is a Home Address option, or an extension header other than hop-by-hop and destination
    /// options (v6).
    pub odd_extensions: bool,
    /// `true` if the IPv4 header checksum is right.
    pub ip_checksum_ok: bool,
    /// Length field of a UDP header; `None` for TCP.
    pub udp_length: Option<usize>,
    /// Checksum field of the transport header.
    pub checksum: u16,
    /// `true` if the transport checksum is right.
    pub checksum_ok: bool,
    /// SEG.SEQ.
    pub seq: u32,
    /// SEG.ACK.
    pub ack: u32,
    /// The twelve bits between data offset and window.
    pub flags: u16,
    /// SEG.WND, unscaled.
    pub window: u16,
    /// The urgent pointer.
    pub urgent: u16,
    /// TCP options, as bytes.
    pub options: Vec<u8>,
    /// Payload without padding.
    pub payload: Vec<u8>,
    /// Offset of the IP header, in bytes from the start of the frame.
    pub network_at: usize,
    /// Offset of the TCP header.
    pub transport_at: usize,
    /// Offset of the payload.
    pub payload_at: usize,
    /// Outer packet of a segment inside a tunnel; offsets then count from the start of the whole frame.
    pub outer: Option<Box<Outer>>,
}

impl Segment {
    /// Returns the length of the IP packet, in bytes.
    #[must_use]
    pub fn packet_bytes(&self) -> usize {
        self.payload_at - self.network_at + self.payload.len()
    }

    /// Returns the body of the first option of `kind`, at any offset. `None` if there is none before the end
    /// of the list or an invalid length.
    #[must_use]
    pub fn option(&self, kind: u8) -> Option<&[u8]> {
        let mut rest = &self.options[..];
        loop {
            match rest {
                [] | [0, ..] => return None,
                [1, after @ ..] => rest = after,
                [found, length, ..] => {
                    let body = rest.get(2..usize::from(*length))?;
                    if *found == kind {
                        return Some(body);
                    }
                    rest = &rest[usize::from(*length)..];
                }
                [_] => return None,
            }
        }
    }

    /// Returns TSval and TSecr (RFC 7323), at any offset; `None` without a timestamp.
    #[must_use]
    pub fn timestamp(&self) -> Option<(u32, u32)> {
        let body: [u8; 8] = self.option(TIMESTAMP)?.try_into().ok()?;
        let [a, b, c, d, e, f, g, h] = body;
        Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
    }

    /// Returns the left and right edge of each SACK block (RFC 2018); empty if the option has an invalid
    /// length.
    #[must_use]
    pub fn sack_blocks(&self) -> Vec<(u32, u32)> {
        let list = self.option(SACK).filter(|body| body.len().is_multiple_of(8));
        let edge = |four: &[u8]| u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
        let blocks = list.unwrap_or_default().chunks(8);
        blocks.map(|block| (edge(block), edge(&block[4..]))).collect()
    }
}

/// Parses `frame`.
#[must_use]
pub fn read<B: AsRef<[u8]>>(frame: &Frame<B>, link: LinkKind) -> Reading {
    let bytes = frame.bytes();
    let (network_at, version, mut vlans) = match find_network(bytes, link) {
        Ok(found) => found,
        Err(fault) => return Reading::Nothing(fault),
    };
    let device_vlan = frame.vlan.map(|tag| tag.tci & 0x0fff);
    if let (Some(_), Some(third)) = (device_vlan, vlans.get_mut(1)) {
        // Two tags identify a flow, and the device's tag is the outermost. Segments with different third tags
        // are one flow but never merge, because their link headers differ.
        *third = 0;
    }
    let ends = Ends { vlans, device_vlan, ..Ends::default() };
    let reading = match version {
        4 => read_v4(bytes, network_at, ends),
        _ => read_v6(bytes, network_at, ends),
    };
    match reading {
        Reading::Segment(mut segment) => {
            segment.device_tag = frame.vlan.map(|tag| (tag.tpid.get(), tag.tci));
            Reading::Segment(segment)
        }
        Reading::Datagram(mut segment) => {
            segment.device_tag = frame.vlan.map(|tag| (tag.tpid.get(), tag.tci));
            Reading::Datagram(segment)
        }
        other => other,
    }
}

/// Returns the offset of the IP header, its version, and the VLAN identifiers before it.
fn find_network(bytes: &[u8], link: LinkKind) -> Result<(usize, u8, Vec<u16>), Fault> {
    if link == LinkKind::RawIp {
        return match bytes.first().map(|first| first >> 4) {
            Some(version @ (4 | 6)) => Ok((0, version, Vec::new())),
            Some(_) => Err(Fault::Malformed),
            None => Err(Fault::Truncated),
        };
    }
    let half = |at| half(bytes, at).ok_or(Fault::Truncated);
    let mut at = 12;
    let mut vlans = Vec::new();
    while matches!(half(at)?, 0x8100 | 0x88a8) && vlans.len() < 2 {
        let identifier = half(at + 2)? & 0x0fff;
        half(at + 4)?;
        vlans.push(identifier);
        at += 4;
    }
    match half(at)? {
        0x0800 => Ok((at + 2, 4, vlans)),
        0x86dd => Ok((at + 2, 6, vlans)),
        _ => Err(Fault::NotIp),
    }
}

fn read_v4(bytes: &[u8], at: usize, mut ends: Ends) -> Reading {
    let Some(header) = bytes.get(at..at + 20) else { return Reading::Nothing(Fault::Truncated) };
    if header[0] >> 4 != 4 {
        return Reading::Nothing(Fault::Malformed);
    }
    ends.addresses = header[12..20].to_vec();
    let header_bytes = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let bits = u16::from_be_bytes([header[6], header[7]]);
    if header_bytes < 20 || total < header_bytes {
        return Reading::Addresses(ends, Fault::Malformed);
    }
    if at + total > bytes.len() {
        return Reading::Addresses(ends, Fault::Truncated);
    }
    if bits & 0x3fff != 0 {
        return Reading::Fragment(ends);
    }
    let segment = Segment {
        ends,
        link: bytes[..at].to_vec(),
        traffic_class: header[1],
        hop_limit: header[8],
        id: u16::from_be_bytes([header[4], header[5]]),
        dont_fragment: bits & 0x4000 != 0,
        reserved_bit: bits & 0x8000 != 0,
        between: bytes[at + 20..at + header_bytes].to_vec(),
        ip_checksum_ok: internet_checksum(&bytes[at..at + header_bytes]) == 0,
        network_at: at,
        transport_at: at + header_bytes,
        ..Segment::default()
    };
    read_transport(&bytes[..at + total], header[9], segment)
}

fn read_v6(bytes: &[u8], at: usize, mut ends: Ends) -> Reading {
    let Some(header) = bytes.get(at..at + 40) else { return Reading::Nothing(Fault::Truncated) };
    if header[0] >> 4 != 6 {
        return Reading::Nothing(Fault::Malformed);
    }
    ends.addresses = header[8..40].to_vec();
    let end = at + 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let word = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
    let (transport_at, protocol) = match extensions::walk(bytes, at, end) {
        Ok(found) => found,
        Err(fault) => return Reading::Addresses(ends, fault),
    };
    if protocol == extensions::FRAGMENT {
        return Reading::Fragment(ends);
    }
    let mut between = bytes[at + 40..transport_at].to_vec();
    between.insert(0, header[6]);
    let segment = Segment {
        ends,
        link: bytes[..at].to_vec(),
        v6: true,
        traffic_class: (word >> 20) as u8,
        hop_limit: header[7],
        flow_label: word & 0x000f_ffff,
        dont_fragment: true,
        odd_extensions: extensions::are_odd(header[6], &between[1..]),
        between,
        ip_checksum_ok: true,
        network_at: at,
        transport_at,
        ..Segment::default()
    };
    read_transport(&bytes[..end], protocol, segment)
}

fn read_transport(packet: &[u8], protocol: u8, mut segment: Segment) -> Reading {
    let rest = &packet[segment.transport_at..];
    match protocol {
        TCP => {}
        UDP if rest.len() < 8 => return Reading::Addresses(segment.ends, Fault::Truncated),
        UDP => {
            let length = usize::from(u16::from_be_bytes([rest[4], rest[5]]));
            if length < 8 || length > rest.len() {
                return Reading::Addresses(segment.ends, Fault::Malformed);
            }
            return Reading::Datagram(Box::new(read_udp(rest, length, segment)));
        }
        other if KNOWN.contains(&other) => return Reading::OtherProtocol,
        _ => return Reading::Unknown(segment.ends),
    }
    if rest.len() < 20 {
        return Reading::Addresses(segment.ends, Fault::Truncated);
    }
    let header_bytes = usize::from(rest[12] >> 4) * 4;
    if header_bytes < 20 || header_bytes > rest.len() {
        return Reading::Addresses(segment.ends, Fault::Malformed);
    }
    let half = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
    segment.ports = (half(0), half(2));
    segment.seq = word(4);
    segment.ack = word(8);
    segment.flags = half(12) & 0x0fff;
    segment.window = half(14);
    segment.urgent = half(18);
    segment.checksum = half(16);
    segment.checksum_ok = transport_checksum(&segment.ends.addresses, TCP, rest) == 0;
    segment.options = rest[20..header_bytes].to_vec();
    segment.payload = rest[header_bytes..].to_vec();
    segment.payload_at = segment.transport_at + header_bytes;
    Reading::Segment(Box::new(segment))
}

/// Parses the datagram at the start of `rest`, which ends with its packet. `length` is the length field of
/// its header.
fn read_udp(rest: &[u8], length: usize, mut segment: Segment) -> Segment {
    let half = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
    segment.ports = (half(0), half(2));
    segment.udp_length = Some(length);
    segment.checksum = half(6);
    segment.checksum_ok = transport_checksum(&segment.ends.addresses, UDP, &rest[..length]) == 0;
    segment.payload = rest[8..].to_vec();
    segment.payload_at = segment.transport_at + 8;
    segment
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}
