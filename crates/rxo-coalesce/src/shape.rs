//! The two IP versions as types: constants and reads that the fast tiers need at compile time.

use rxo_wire::layout::{self, Layout};
use rxo_wire::udp::HEADER_BYTES as UDP_BYTES;
use rxo_wire::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, Ip, IpVersion, PROTOCOL_UDP, Plain, plain_v4,
    plain_v4_checksum, plain_v4_key, plain_v6, plain_v6_key,
};

/// The bit that distinguishes CE from ECT(0), the mark of nearly all other ECN packets.
const ECT_1: u8 = 1;
/// The length of TCP's fixed header and the timestamp option with its padding, in bytes.
const TCP_BYTES: usize = 32;

/// Evaluates an expression of type `Option` for the IP version of a frame. `$shape` names its [`Shape`],
/// `$network` the offset of its IP header. `None` for a frame without an IP header. A macro, so that each
/// version is compiled separately.
macro_rules! by_ip_version {
    (($link:expr, $bytes:expr), $shape:ident, $network:ident => $call:expr) => {
        match $link {
            LinkKind::Ethernet => match ethertype($bytes) {
                Some(ETHERTYPE_IPV4) => by_ip_version!(V4, ETHERNET_HEADER_BYTES, $shape, $network => $call),
                Some(ETHERTYPE_IPV6) => by_ip_version!(V6, ETHERNET_HEADER_BYTES, $shape, $network => $call),
                _ => None,
            },
            LinkKind::RawIp => match $bytes.first().map(|first| first >> 4) {
                Some(4) => by_ip_version!(V4, 0, $shape, $network => $call),
                Some(6) => by_ip_version!(V6, 0, $shape, $network => $call),
                _ => None,
            },
        }
    };
    ($version:ty, $at:expr, $shape:ident, $network:ident => $call:expr) => {{
        type $shape = $version;
        let $network = $at;
        $call
    }};
}
pub(crate) use by_ip_version;

/// An IP version, for packets without IPv4 options and extension headers.
pub(crate) trait Shape {
    /// The bytes of the IP and TCP header, always with space for the timestamp option.
    type Headers: Start;
    /// The bytes of the IP and UDP header.
    type Start: Start;
    /// The IP version that the type represents.
    const VERSION: IpVersion;
    /// The EtherType of this version.
    const ETHERTYPE: u16;
    /// The length of the fixed IP header, in bytes.
    const IP_BYTES: usize;
    /// The fields that must be equal in the next data segment of a flow.
    const DATA: Layout = layout::data(Self::VERSION);
    /// The fields that must be equal in the next datagram of a flow.
    const DATAGRAM: Layout = layout::datagram(Self::VERSION);

    /// Reads the flow key of a packet; `None` if the packet cannot be plain.
    fn key(packet: &[u8]) -> Option<FlowKey>;

    /// Reads the flow key of a UDP packet; `None` if it is not UDP or is truncated.
    fn datagram_key(packet: &[u8]) -> Option<FlowKey>;

    /// Reads a plain packet; `None` if it is not plain.
    fn plain(packet: &[u8]) -> Option<Plain>;

    /// Returns `true` if the IP header checksum is right, or the IP version has no header checksum.
    fn is_checksum_right(packet: &[u8]) -> bool;

    /// Returns `true` if the packet is a fragment or has the reserved bit set.
    fn is_unusual(packet: &[u8]) -> bool;

    /// Returns `true` if the packet may be marked CE (RFC 3168 section 5): it has the bit that ECT(0) lacks.
    fn may_be_marked_ce(packet: &[u8]) -> bool;

    /// Reads the IP header of an unfragmented packet; `None` if it is truncated. Assumes that its checksum is
    /// right.
    fn ip(packet: &[u8]) -> Option<Ip>;
}

/// The bytes at the start of a packet, as an array whose length the compiler knows.
pub(crate) trait Start: AsRef<[u8]> + AsMut<[u8]> {
    /// An array that contains only zeros.
    const ZEROS: Self;

    /// Returns the bytes at the start of `packet`; `None` if it is shorter.
    fn of(packet: &[u8]) -> Option<&Self>;
}

impl<const BYTES: usize> Start for [u8; BYTES] {
    const ZEROS: Self = [0; BYTES];

    #[inline]
    fn of(packet: &[u8]) -> Option<&Self> {
        packet.first_chunk()
    }
}

/// IPv4 as a [`Shape`].
pub(crate) struct V4;

impl Shape for V4 {
    type Headers = [u8; 20 + TCP_BYTES];
    type Start = [u8; 20 + UDP_BYTES];
    const VERSION: IpVersion = IpVersion::V4;
    const ETHERTYPE: u16 = ETHERTYPE_IPV4;
    const IP_BYTES: usize = 20;

    #[inline]
    fn key(packet: &[u8]) -> Option<FlowKey> {
        plain_v4_key(packet, 0)
    }

    #[inline(always)]
    fn datagram_key(packet: &[u8]) -> Option<FlowKey> {
        let start: &[u8; 28] = packet.first_chunk()?;
        if start[0] != 0x45 || start[9] != PROTOCOL_UDP {
            return None;
        }
        let word = |at| (layout::number(start, at) >> 32) as u32;
        Some(FlowKey::v4(word(12), word(16), word(20), 0))
    }

    #[inline(always)]
    fn plain(packet: &[u8]) -> Option<Plain> {
        plain_v4(packet, 0)
    }

    #[inline]
    fn is_checksum_right(packet: &[u8]) -> bool {
        plain_v4_checksum(packet)
    }

    #[inline]
    fn is_unusual(packet: &[u8]) -> bool {
        !matches!(packet, [_, _, _, _, _, _, 0x00 | 0x40, 0, ..])
    }

    #[inline]
    fn may_be_marked_ce(packet: &[u8]) -> bool {
        packet.get(1).is_some_and(|tos| tos & ECT_1 != 0)
    }

    #[inline]
    fn ip(packet: &[u8]) -> Option<Ip> {
        let header: &[u8; 20] = packet.first_chunk()?;
        Some(Ip {
            traffic_class: header[1],
            hop_limit: header[8],
            flow_label: 0,
            id: u16::from_be_bytes([header[4], header[5]]),
            dont_fragment: header[6] & 0x40 != 0,
            ..ORDINARY_IP
        })
    }
}

/// IPv6 as a [`Shape`].
pub(crate) struct V6;

impl Shape for V6 {
    type Headers = [u8; 40 + TCP_BYTES];
    type Start = [u8; 40 + UDP_BYTES];
    const VERSION: IpVersion = IpVersion::V6;
    const ETHERTYPE: u16 = ETHERTYPE_IPV6;
    const IP_BYTES: usize = 40;

    #[inline]
    fn key(packet: &[u8]) -> Option<FlowKey> {
        plain_v6_key(packet, 0)
    }

    #[inline]
    fn datagram_key(packet: &[u8]) -> Option<FlowKey> {
        let start: &[u8; 48] = packet.first_chunk()?;
        if start[0] >> 4 != 6 || start[6] != PROTOCOL_UDP {
            return None;
        }
        let ports = (layout::number(start, 40) >> 32) as u32;
        Some(FlowKey::v6(start.get(8..)?.first_chunk()?, ports, 0))
    }

    #[inline(always)]
    fn plain(packet: &[u8]) -> Option<Plain> {
        plain_v6(packet, 0)
    }

    #[inline]
    fn is_checksum_right(_packet: &[u8]) -> bool {
        true
    }

    #[inline]
    fn is_unusual(_packet: &[u8]) -> bool {
        false
    }

    #[inline]
    fn may_be_marked_ce(packet: &[u8]) -> bool {
        packet.get(1).is_some_and(|byte| byte & ECT_1 << 4 != 0)
    }

    #[inline]
    fn ip(packet: &[u8]) -> Option<Ip> {
        let header: &[u8; 8] = packet.first_chunk()?;
        let first = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        Some(Ip {
            version: IpVersion::V6,
            traffic_class: (first >> 20) as u8,
            hop_limit: header[7],
            flow_label: first & 0x000f_ffff,
            ..ORDINARY_IP
        })
    }
}

/// The fields that the IP headers of all ordinary segments share.
const ORDINARY_IP: Ip = Ip {
    version: IpVersion::V4,
    traffic_class: 0,
    hop_limit: 0,
    flow_label: 0,
    id: 0,
    dont_fragment: true,
    reserved_bit: false,
    has_options: false,
    has_odd_extensions: false,
    checksum_ok: true,
};
