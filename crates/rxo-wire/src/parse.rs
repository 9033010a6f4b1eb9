//! Parses the headers of a frame in one pass.

use crate::ethernet::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6, VlanStack};
use crate::{
    FlowKey, Offsets, PROTOCOL_TCP, PROTOCOL_UDP, TcpSegment, UdpDatagram, ipv4, ipv6, tcp, udp,
};

/// The parsed headers of a frame. One type for IPv4 and IPv6, which all layers above use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The flow key; its ports are 0 unless the packet is an unfragmented TCP segment or UDP datagram.
    pub key: FlowKey,
    /// The offsets of headers and payload.
    pub at: Offsets,
    /// The VLAN tags in the bytes of the frame.
    pub vlans: VlanStack,
    /// The fields of the IP header.
    pub ip: Ip,
    /// The fields of the transport header.
    pub transport: Transport,
}

impl Parsed {
    /// Returns the length of the payload, in bytes, without padding.
    #[inline]
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        self.at.payload_bytes()
    }
}

/// The fields of the IP header that the layers above need, for both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// The IP version of the packet.
    pub version: IpVersion,
    /// The type of service (IPv4) or traffic class (IPv6), including the ECN bits.
    pub traffic_class: u8,
    /// The time to live (IPv4) or hop limit (IPv6).
    pub hop_limit: u8,
    /// The flow label (IPv6); 0 for IPv4.
    pub flow_label: u32,
    /// The identification (IPv4); 0 for IPv6.
    pub id: u16,
    /// The DF bit; always `true` for IPv6.
    pub dont_fragment: bool,
    /// The reserved bit next to DF (IPv4); always `false` for IPv6.
    pub reserved_bit: bool,
    /// `true` if the header has options (IPv4) or extension headers (IPv6).
    pub has_options: bool,
    /// `true` if there is an IPv6 extension header other than hop-by-hop options and destination options without
    /// a Home Address. Such a header may change the addresses in the pseudo-header: a routing header has another
    /// destination (RFC 8200 section 8.1), a Home Address another source (RFC 6275 section 6.3). An
    /// authentication header protects each packet separately (RFC 4302).
    pub has_odd_extensions: bool,
    /// `true` if the header checksum is right; always `true` for IPv6, which has none.
    pub checksum_ok: bool,
}

/// The version of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// The packet is IPv4 (RFC 791).
    V4,
    /// The packet is IPv6 (RFC 8200).
    V6,
}

/// The transport protocol of an IP packet, with its parsed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The packet contains a TCP segment.
    Tcp(TcpSegment),
    /// The packet contains a UDP datagram.
    Udp(UdpDatagram),
    /// A fragment of a packet. Its transport header is not read, not even in the first fragment.
    Fragment,
    /// Another protocol, with its IP protocol number.
    Other(u8),
}

impl Transport {
    /// Returns the IP protocol number; `None` for a fragment, whose protocol is not read.
    #[inline]
    #[must_use]
    pub const fn protocol(&self) -> Option<u8> {
        match self {
            Self::Tcp(_) => Some(PROTOCOL_TCP),
            Self::Udp(_) => Some(PROTOCOL_UDP),
            Self::Other(protocol) => Some(*protocol),
            Self::Fragment => None,
        }
    }
}

/// Protocols that cannot contain a TCP segment between the same two hosts: ICMP, IGMP, IPv4, UDP, IPv6, GRE,
/// ICMPv6, no next header, OSPF, PIM, VRRP, SCTP, UDP-Lite.
const WITHOUT_TCP: [u8; 13] = [1, 2, 4, 17, 41, 47, 58, 59, 89, 103, 112, 132, 136];

impl Transport {
    /// Returns `true` if a TCP segment between the packet's addresses may follow the parsed headers: in a
    /// fragment, or after an extension header that this crate does not parse, such as mobility (135), HIP (139),
    /// Shim6 (140) or ESP (50).
    #[must_use]
    pub fn may_hide_tcp(&self) -> bool {
        match self {
            Self::Fragment => true,
            Self::Other(protocol) => !WITHOUT_TCP.contains(protocol),
            Self::Tcp(_) | Self::Udp(_) => false,
        }
    }
}

/// A frame that could not be parsed, with as much of its flow key as could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unparsed {
    /// The reason why the frame could not be parsed.
    pub why: Malformed,
    /// The addresses and VLANs of the packet, with ports 0. A caller needs the addresses to keep the packets
    /// between two hosts in order. `None` if the IP header was not readable.
    pub addresses: Option<FlowKey>,
}

/// The reason why the headers of a frame cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// The frame is valid but does not contain IP (ARP and the like).
    NotIp,
    /// The frame ends before its headers or its packet do.
    Truncated,
    /// The IP version differs from the EtherType, or is neither 4 nor 6.
    Version,
    /// A length field contradicts another one or the frame.
    Length,
}

impl From<Malformed> for Unparsed {
    #[inline]
    fn from(why: Malformed) -> Self {
        Self { why, addresses: None }
    }
}

/// Parses an Ethernet frame with up to two VLAN tags. Reads only headers; does not allocate.
///
/// # Examples
/// ```
/// use rxo_wire::build::{EthernetHeader, Ipv4Header, UdpHeader};
/// use rxo_wire::{Malformed, Transport, parse};
///
/// let ip = Ipv4Header { protocol: 17, payload_bytes: 8 + 5, ..Ipv4Header::default() };
/// let mut frame = [0; 14 + 20 + 8 + 5];
/// let ethernet = EthernetHeader { ethertype: 0x0800, ..EthernetHeader::default() };
/// let udp = UdpHeader { destination_port: 443, payload_bytes: 5, ..UdpHeader::default() };
/// udp.write(ip.write(ethernet.write(&mut frame)?)?)?;
///
/// let parsed = parse(&frame).map_err(|_| "unreadable")?;
/// assert!(matches!(parsed.transport, Transport::Udp(_)));
/// assert_eq!((parsed.key.destination_port(), parsed.payload_bytes()), (443, 5));
/// // Of a truncated frame, only the addresses are known.
/// let cut = parse(&frame[..40]).map_err(|unparsed| (unparsed.why, unparsed.addresses.is_some()));
/// assert_eq!(cut.err(), Some((Malformed::Truncated, true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Unparsed`] if the frame is not IP or its lengths are invalid. Never panics.
#[inline]
pub fn parse(frame: &[u8]) -> Result<Parsed, Unparsed> {
    let link = ethernet::read(frame)?;
    match link.ethertype {
        ETHERTYPE_IPV4 => parse_v4(frame, link.network, link.vlans),
        ETHERTYPE_IPV6 => parse_v6(frame, link.network, link.vlans),
        _ => Err(Malformed::NotIp.into()),
    }
}

/// Parses a packet that begins with its IP header.
///
/// # Errors
/// [`Unparsed`] if the packet is neither IPv4 nor IPv6 or its lengths are invalid; see [`parse`].
///
/// # Examples
/// ```
/// use rxo_wire::build::{Ipv4Header, UdpHeader};
/// use rxo_wire::{Malformed, Transport, parse_ip};
///
/// let ip = Ipv4Header { protocol: 17, payload_bytes: 8, ..Ipv4Header::default() };
/// let mut packet = [0; 28];
/// UdpHeader { destination_port: 53, ..UdpHeader::default() }.write(ip.write(&mut packet)?)?;
///
/// let parsed = parse_ip(&packet).map_err(|_| "unreadable")?;
/// assert!(matches!(parsed.transport, Transport::Udp(_)));
/// assert_eq!(parsed.key.destination_port(), 53);
/// assert_eq!(parse_ip(&[]).err().map(|unparsed| unparsed.why), Some(Malformed::Truncated));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline]
pub fn parse_ip(packet: &[u8]) -> Result<Parsed, Unparsed> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => parse_v4(packet, 0, VlanStack::default()),
        Some(6) => parse_v6(packet, 0, VlanStack::default()),
        Some(_) => Err(Malformed::Version.into()),
        None => Err(Malformed::Truncated.into()),
    }
}

#[inline]
pub(crate) fn parse_v4(frame: &[u8], network: usize, vlans: VlanStack) -> Result<Parsed, Unparsed> {
    let packet = frame.get(network..).ok_or(Malformed::Truncated)?;
    ipv4::read(packet, vlans.key())?.parse(frame, network, vlans)
}

#[inline]
pub(crate) fn parse_v6(frame: &[u8], network: usize, vlans: VlanStack) -> Result<Parsed, Unparsed> {
    let packet = frame.get(network..).ok_or(Malformed::Truncated)?;
    ipv6::read(packet, vlans.key())?.parse(frame, network, vlans)
}

/// The fields of an IP header, with its extension headers if it is IPv6.
pub(crate) struct IpHeader {
    pub(crate) ip: Ip,
    /// The flow key without ports.
    pub(crate) addresses: FlowKey,
    pub(crate) protocol: u8,
    /// The length of the header and its extensions, in bytes.
    pub(crate) header: usize,
    /// The length of the packet, in bytes; `Err` if it contradicts the frame or the header.
    pub(crate) total: Result<usize, Malformed>,
    pub(crate) is_fragment: bool,
}

impl IpHeader {
    /// Parses the rest of the packet, which is the same for both IP versions. The header is at the offset `network` of
    /// `frame`.
    #[inline(always)]
    fn parse(self, frame: &[u8], network: usize, vlans: VlanStack) -> Result<Parsed, Unparsed> {
        let unparsed = |why| Unparsed { why, addresses: Some(self.addresses) };
        let end = network + self.total.map_err(unparsed)?;
        let transport_at = network + self.header;
        let segment = frame.get(transport_at..end).ok_or_else(|| unparsed(Malformed::Length))?;
        let (transport, header) = self.transport(segment).map_err(unparsed)?;
        let ports = match (&transport, segment) {
            (Transport::Tcp(_) | Transport::Udp(_), [a, b, c, d, ..]) => {
                u32::from_be_bytes([*a, *b, *c, *d])
            }
            _ => 0,
        };
        Ok(Parsed {
            key: self.addresses.with_ports(ports),
            at: Offsets {
                network: network as u32,
                transport: transport_at as u32,
                payload: (transport_at + header) as u32,
                end: end as u32,
            },
            vlans,
            ip: self.ip,
            transport,
        })
    }

    #[inline(always)]
    fn transport(&self, segment: &[u8]) -> Result<(Transport, usize), Malformed> {
        if self.is_fragment {
            return Ok((Transport::Fragment, 0));
        }
        match self.protocol {
            PROTOCOL_TCP => tcp::read(segment).map(|(tcp, header)| (Transport::Tcp(tcp), header)),
            PROTOCOL_UDP => udp::read(segment).map(|(udp, header)| (Transport::Udp(udp), header)),
            other => Ok((Transport::Other(other), 0)),
        }
    }
}
