//! Tunnels: parses the packet inside a tunnel packet.
//!
//! Separate from [`parse`](crate::parse()), which stops at the first transport header: most receivers need no
//! more, and only the two ends of a tunnel know for sure what its payload is. [`Tunnel::inside`] parses the
//! packet inside a packet of a known tunnel. [`inside_at`] searches for the packet whose TCP or UDP header is at
//! a given offset, which is the only information that a kernel gives about a GSO frame inside a tunnel.
//!
//! | tunnel | between outer IP header and inner packet | source |
//! |---|---|---|
//! | VXLAN | UDP, 8 bytes, Ethernet | RFC 7348 |
//! | VXLAN-GPE | UDP, 8 bytes | draft-ietf-nvo3-vxlan-gpe |
//! | Geneve | UDP, 8 bytes and options, Ethernet or nothing | RFC 8926 |
//! | FOU, GUE | UDP, nothing or 4 bytes and options | Linux `net/ipv4/fou_core.c` |
//! | GRE | 4 to 16 bytes, in UDP or not, Ethernet or nothing | RFC 2784, 2890, 8086 |
//! | IP in IP, SIT | nothing | RFC 2003, 2473, 4213 |
//!
//! # Contract
//! No function of this module allocates, panics, or reads more than headers. A tunnel inside a tunnel is not
//! parsed.

use crate::checksum::{Sum, pseudo_header};
use crate::parse::{parse_v4, parse_v6};
use crate::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, Offsets, PROTOCOL_UDP, Parsed, Transport, VlanStack, ethernet,
};

/// A packet inside a tunnel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The parsed headers of the inner packet. Offsets count from the first byte of the whole frame.
    pub parsed: Parsed,
    /// The offsets of the outer headers of the tunnel packet. The outer payload begins after the UDP header;
    /// without UDP, at the GRE header or the inner IP header.
    pub outer: Offsets,
    /// The kind of the header that follows the outer IP header: UDP, GRE, or the inner IP header.
    pub carrier: Carrier,
}

/// The kind of the header that follows the outer IP header of a tunnel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The inner packet follows a UDP header and possibly a header of the tunnel.
    Udp {
        /// `true` if the outer UDP datagram has a checksum.
        has_checksum: bool,
    },
    /// The inner packet follows a GRE header.
    Gre {
        /// `true` if the GRE header has a checksum.
        has_checksum: bool,
    },
    /// The inner IP header follows the outer one directly.
    Ip,
}

/// The tunnels over UDP that are recognised by their destination port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// VXLAN: an Ethernet frame after a UDP and a VXLAN header.
    Vxlan,
    /// Geneve: an Ethernet frame after a UDP and a Geneve header.
    Geneve,
}

impl Tunnel {
    /// Returns the tunnel with this registered destination port; for VXLAN also Linux's default port. `None`
    /// for other ports.
    ///
    /// # Examples
    /// ```
    /// use rxo_wire::tunnel::Tunnel;
    ///
    /// assert_eq!(Tunnel::of_port(4789), Some(Tunnel::Vxlan));
    /// assert_eq!(Tunnel::of_port(443), None);
    /// ```
    #[inline]
    #[must_use]
    pub const fn of_port(port: u16) -> Option<Self> {
        match port {
            4_789 | 8_472 => Some(Self::Vxlan),
            6_081 => Some(Self::Geneve),
            _ => None,
        }
    }

    /// Parses the packet inside the datagram of this tunnel in `frame`, whose outer headers are `outer`. The
    /// inner flow key includes the tunnel and its network identifier. `None` if a VXLAN header has unknown
    /// flags, if a Geneve header marks a control packet or critical options, or if the datagram does not
    /// contain an Ethernet frame with a valid IP packet.
    #[must_use]
    pub fn inside(self, frame: &[u8], outer: &Parsed) -> Option<Inside> {
        let at = outer.at.payload as usize;
        let header: &[u8; 8] = frame.get(at..outer.at.end as usize)?.first_chunk()?;
        let header_bytes = match self {
            Self::Vxlan if header[0] == VXLAN_HAS_VNI => 8,
            Self::Geneve if header[1] & GENEVE_ODD == 0 => match geneve(header)? {
                (bytes, Begins::Ethernet) => bytes,
                (_, Begins::Ip) => return None,
            },
            Self::Vxlan | Self::Geneve => return None,
        };
        let mut inside = read(frame, outer, (at + header_bytes, Begins::Ethernet))?;
        let network = u32::from_be_bytes([0, header[4], header[5], header[6]]);
        inside.parsed.key = inside.parsed.key.in_tunnel(self, network);
        Some(inside)
    }
}

impl Inside {
    /// Returns `true` if the checksum of the outer UDP header is right or absent. The inner checksum must be
    /// right. The inner segment with its pseudo-header then sums to zero, so the payload need not be read.
    /// Returns `false` if the tunnel does not use UDP. `frame` and `outer` must be the arguments from which this
    /// value was parsed.
    #[must_use]
    pub fn outer_checksum_holds(&self, frame: &[u8], outer: &Parsed) -> bool {
        let Carrier::Udp { has_checksum } = self.carrier else { return false };
        let Some(protocol) = self.parsed.transport.protocol() else { return !has_checksum };
        let headers = frame.get(outer.at.transport as usize..self.parsed.at.transport as usize);
        let inner = pseudo_header(&self.parsed.key, protocol, self.parsed.at.segment_bytes());
        let around = pseudo_header(&outer.key, PROTOCOL_UDP, outer.at.segment_bytes());
        !has_checksum || headers.is_some_and(|it| (around + Sum::of(it) - inner).is_valid())
    }
}

/// Finds the packet inside the tunnel packet `frame`, with the outer headers `outer`, whose TCP or UDP header
/// begins at offset `transport`. `None` if no tunnel of a supported kind has an inner packet with this
/// offset.
///
/// A kernel gives only this offset, because it does not record the kind of the tunnel.
#[must_use]
pub fn inside_at(frame: &[u8], outer: &Parsed, transport: usize) -> Option<Inside> {
    let body = frame.get(..outer.at.end as usize)?;
    let payload = outer.at.payload as usize;
    let starts = match outer.transport {
        Transport::Udp(_) => in_udp(body, payload),
        Transport::Other(IPV4_IN_IP | IPV6_IN_IP) => only(Some((payload, Begins::Ip))),
        Transport::Other(GRE) => only(gre(body, payload, GRE_CHECKSUM | GRE_KEY)),
        _ => return None,
    };
    // Several tunnels may fit the same bytes; the offset of the transport header decides.
    let is_meant = |inside: &Inside| {
        let Parsed { at, transport: carried, .. } = inside.parsed;
        at.transport as usize == transport
            && matches!(carried, Transport::Tcp(_) | Transport::Udp(_))
    };
    starts.into_iter().flatten().find_map(|start| read(frame, outer, start).filter(is_meant))
}

/// The header with which an inner packet begins.
#[derive(Clone, Copy, Debug)]
enum Begins {
    Ethernet,
    Ip,
}

/// The start of an inner packet: its offset in bytes, and its first header.
type Start = (usize, Begins);

/// The only accepted value of the VXLAN flags: the network identifier is valid.
const VXLAN_HAS_VNI: u8 = 0x08;

/// The flags of Geneve that are not accepted: a control packet, or a critical option.
const GENEVE_ODD: u8 = 0xc0;

/// The protocol type of Ethernet in GRE and Geneve headers.
const ETHERNET: u16 = 0x6558;

/// IP protocol numbers of tunnels without UDP (IANA).
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;

/// The flags of GRE. Each adds four bytes to the header. The flag for sequence numbers is not accepted, because
/// each segment would need its own.
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;

const fn only(start: Option<Start>) -> [Option<Start>; 6] {
    [start, None, None, None, None, None]
}

/// Returns every offset in the payload of a datagram at which an inner packet may begin.
fn in_udp(body: &[u8], payload: usize) -> [Option<Start>; 6] {
    let header: Option<&[u8; 8]> = body.get(payload..).and_then(<[u8]>::first_chunk);
    // GUE version 0, with options. Version 1 is an IP header without a GUE header, as in FOU.
    let gue = header
        .filter(|header| header[0] >> 5 == 0)
        .map(|header| (payload + 4 + usize::from(header[0] & 0x1f) * 4, Begins::Ip));
    [
        Some((payload + 8, Begins::Ethernet)),
        Some((payload + 8, Begins::Ip)),
        header.and_then(geneve).map(|(bytes, begins)| (payload + bytes, begins)),
        Some((payload, Begins::Ip)),
        gue,
        gre(body, payload, GRE_KEY),
    ]
}

/// Returns the length of a Geneve header in bytes, and the first header after it; `None` if it is invalid.
fn geneve(header: &[u8; 8]) -> Option<(usize, Begins)> {
    let begins = begins(u16::from_be_bytes([header[2], header[3]]))?;
    (header[0] >> 6 == 0).then_some((8 + usize::from(header[0] & 0x3f) * 4, begins))
}

/// Returns the start of the packet after a GRE header; `None` if the header has flags other than `fields`.
fn gre(body: &[u8], at: usize, fields: u16) -> Option<Start> {
    let header: &[u8; 4] = body.get(at..)?.first_chunk()?;
    let flags = u16::from_be_bytes([header[0], header[1]]);
    let begins = begins(u16::from_be_bytes([header[2], header[3]]))?;
    (flags & !fields == 0).then_some((at + 4 + flags.count_ones() as usize * 4, begins))
}

const fn begins(protocol_type: u16) -> Option<Begins> {
    match protocol_type {
        ETHERNET => Some(Begins::Ethernet),
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Some(Begins::Ip),
        _ => None,
    }
}

fn read(frame: &[u8], outer: &Parsed, (at, begins): Start) -> Option<Inside> {
    let body = frame.get(..outer.at.end as usize)?;
    let (network, vlans) = match begins {
        Begins::Ip => (at, VlanStack::default()),
        Begins::Ethernet => {
            let link = ethernet::read(body.get(at..)?).ok()?;
            if !matches!(link.ethertype, ETHERTYPE_IPV4 | ETHERTYPE_IPV6) {
                return None;
            }
            (at + link.network, link.vlans)
        }
    };
    let parsed = match body.get(network)? >> 4 {
        4 => parse_v4(body, network, vlans).ok()?,
        6 => parse_v6(body, network, vlans).ok()?,
        _ => return None,
    };
    // After a routing header the UDP checksum covers other addresses than those of the outer header.
    if outer.ip.has_odd_extensions {
        return None;
    }
    let carrier = match outer.transport {
        Transport::Udp(udp) => Carrier::Udp { has_checksum: udp.checksum != 0 },
        Transport::Other(GRE) => {
            Carrier::Gre { has_checksum: body.get(outer.at.transport as usize)? & 0x80 != 0 }
        }
        _ => Carrier::Ip,
    };
    Some(Inside { parsed, outer: outer.at, carrier })
}
