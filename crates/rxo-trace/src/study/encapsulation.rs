//! Removes encapsulation headers that neither the code for the capture's link type nor the engine can parse.
//!
//! A tunnel endpoint removes the outer headers and then coalesces the inner packets. A study does the same:
//! [`strip`] finds the inner IP packet. This module is separate from parsing, because most packets parse
//! directly as TCP or UDP and never come here.
//!
//! The engine itself coalesces packets inside VXLAN and Geneve. Therefore these headers are removed in two
//! cases only: inside another encapsulation, and in truncated packets, because the engine cannot verify their
//! inner checksums.

use rxo_capture::LinkType;
use rxo_frame::LinkKind;
use rxo_wire::tunnel::Tunnel;
use rxo_wire::{ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6};

/// The maximum number of headers that are removed before the IP packet.
const MOST_HEADERS: usize = 12;
/// The length of the addresses of an Ethernet frame, in bytes.
const ADDRESSES_BYTES: usize = 12;
const IPV6_BYTES: usize = 40;

/// A kind of encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encapsulation {
    /// MPLS labels (RFC 3032).
    Mpls,
    /// PPPoE (RFC 2516).
    Pppoe,
    /// More than two VLAN tags.
    Tags,
    /// GRE (RFC 2784 and 2890), including the ERSPAN of a mirror port inside GRE.
    Gre,
    /// IP in IP (RFC 2003 and 4213).
    IpInIp,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// Geneve (RFC 8926).
    Geneve,
    /// A PPP link (RFC 1662).
    Ppp,
    /// A wireless network (IEEE 802.11).
    Wireless,
}

/// The next header to read in the search for the inner IP packet.
#[derive(Clone, Copy)]
enum Header {
    Ethernet,
    /// The header of this Ethernet type.
    Type(u16),
    Ppp,
    Radiotap,
    Wireless,
    /// The bytes after the last MPLS label: an IP packet or an Ethernet frame.
    Labelled,
}

/// Returns the outermost encapsulation of the captured packet `bytes`, and the offset of the innermost IP
/// packet if it can be read. `None` if the packet has no known encapsulation.
#[cold]
pub(super) fn strip(link: LinkType, bytes: &[u8]) -> Option<(Encapsulation, Option<usize>)> {
    let (mut at, mut header) = begin(link, bytes)?;
    let mut outermost = match header {
        Header::Ppp => Some(Encapsulation::Ppp),
        Header::Radiotap | Header::Wireless => Some(Encapsulation::Wireless),
        _ => None,
    };
    let mut found = None;
    let mut tags = 0;
    for _ in 0..MOST_HEADERS {
        let rest = bytes.get(at..).unwrap_or_default();
        if let Header::Type(ETHERTYPE_IPV4 | ETHERTYPE_IPV6) = header {
            found = Some(at);
        }
        let Some((own, length, next)) = read(header, rest) else { break };
        tags += u32::from(matches!(header, Header::Type(0x8100 | 0x88a8 | 0x9100)));
        outermost = outermost.or(own).or((tags > 2).then_some(Encapsulation::Tags));
        (at, header) = (at + length, next);
    }
    outermost.map(|kind| (kind, found))
}

/// Returns the encapsulation of a datagram to UDP port `port`; `None` for other ports.
#[inline]
pub(super) fn of_port(port: u16) -> Option<Encapsulation> {
    Some(match Tunnel::of_port(port)? {
        Tunnel::Vxlan => Encapsulation::Vxlan,
        Tunnel::Geneve => Encapsulation::Geneve,
    })
}

/// Returns the inner packet at the offset `ip` of the captured packet as a frame of the kind `link`: with the
/// addresses of the outer frame if the outer frame is an Ethernet frame.
pub(super) fn inner(link: LinkKind, bytes: &[u8], ip: usize) -> Vec<u8> {
    let packet = bytes.get(ip..).unwrap_or_default();
    let mut frame = Vec::with_capacity(ETHERNET_HEADER_BYTES + packet.len());
    if link == LinkKind::Ethernet {
        let is_v6 = packet.first().is_some_and(|byte| byte >> 4 == 6);
        frame.extend_from_slice(bytes.get(..ADDRESSES_BYTES).unwrap_or_default());
        frame.extend_from_slice(
            &(if is_v6 { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 }).to_be_bytes(),
        );
    }
    frame.extend_from_slice(packet);
    frame
}

/// Returns the offset and the kind of the first header of a captured packet; `None` if its link type is unknown or
/// the packet is too short.
fn begin(link: LinkType, bytes: &[u8]) -> Option<(usize, Header)> {
    /// The link types of PPP.
    const PPP: [u16; 2] = [9, 50];
    const WIRELESS: u16 = 105;
    const RADIOTAP: u16 = 127;
    Some(match link {
        LinkType::ETHERNET => (0, Header::Ethernet),
        LinkType::LINUX_SLL => (16, Header::Type(be_u16(bytes, 14)?)),
        LinkType::LINUX_SLL2 => (20, Header::Type(be_u16(bytes, 0)?)),
        LinkType(number) if PPP.contains(&number) => (0, Header::Ppp),
        LinkType(WIRELESS) => (0, Header::Wireless),
        LinkType(RADIOTAP) => (0, Header::Radiotap),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => (0, Header::Labelled),
        _ => return None,
    })
}

/// Reads `header` at the beginning of `rest`. Returns the kind of encapsulation if the header is an
/// encapsulation, the length of the header in bytes, and the next header. `None` if no known header follows.
fn read(header: Header, rest: &[u8]) -> Option<(Option<Encapsulation>, usize, Header)> {
    match header {
        Header::Ethernet => {
            Some((None, ETHERNET_HEADER_BYTES, Header::Type(be_u16(rest, ADDRESSES_BYTES)?)))
        }
        Header::Type(kind) => by_type(kind, rest),
        Header::Ppp => ppp(rest).map(|(length, next)| (None, length, next)),
        Header::Radiotap => {
            let length = u16::from_le_bytes(*rest.get(2..)?.first_chunk()?);
            Some((None, length.into(), Header::Wireless))
        }
        Header::Wireless => wireless(rest).map(|(length, next)| (None, length, next)),
        Header::Labelled => Some((
            None,
            0,
            match rest.first()? >> 4 {
                4 => Header::Type(ETHERTYPE_IPV4),
                6 => Header::Type(ETHERTYPE_IPV6),
                // A control word (RFC 4385) begins with zeros.
                0 => return Some((None, 4, Header::Ethernet)),
                _ => Header::Ethernet,
            },
        )),
    }
}

fn by_type(kind: u16, rest: &[u8]) -> Option<(Option<Encapsulation>, usize, Header)> {
    match kind {
        0x8100 | 0x88a8 | 0x9100 => Some((None, 4, Header::Type(be_u16(rest, 2)?))),
        0x8847 | 0x8848 => {
            let is_last = rest.get(2)? & 1 == 1;
            let next = if is_last { Header::Labelled } else { Header::Type(kind) };
            Some((Some(Encapsulation::Mpls), 4, next))
        }
        0x8864 => Some((Some(Encapsulation::Pppoe), 6, Header::Ppp)),
        ETHERTYPE_IPV4 => {
            let length = usize::from(rest.first()? & 0x0f) * 4;
            let is_fragment = be_u16(rest, 6)? & 0x3fff != 0;
            if is_fragment || length < 20 { None } else { behind_ip(*rest.get(9)?, length, rest) }
        }
        ETHERTYPE_IPV6 => behind_ip(*rest.get(6)?, IPV6_BYTES, rest),
        _ => None,
    }
}

/// Returns the encapsulation for the IP protocol number `protocol`, the total length of the headers in bytes,
/// and the next header. The encapsulation's own header begins after the first `length` bytes of `rest`.
fn behind_ip(
    protocol: u8,
    length: usize,
    rest: &[u8],
) -> Option<(Option<Encapsulation>, usize, Header)> {
    let (kind, more, next) = match protocol {
        4 => (Encapsulation::IpInIp, 0, Header::Type(ETHERTYPE_IPV4)),
        41 => (Encapsulation::IpInIp, 0, Header::Type(ETHERTYPE_IPV6)),
        47 => {
            let (more, next) = gre(rest.get(length..)?)?;
            (Encapsulation::Gre, more, next)
        }
        17 => udp(rest.get(length..)?)?,
        _ => return None,
    };
    Some((Some(kind), length + more, next))
}

/// Returns the tunnel in a datagram, the length of its headers in bytes, and the next header. `None` if the
/// datagram belongs to no known tunnel, or is too short.
fn udp(rest: &[u8]) -> Option<(Encapsulation, usize, Header)> {
    const UDP_BYTES: usize = 8;
    const TUNNEL_BYTES: usize = 8;
    let kind = of_port(be_u16(rest, 2)?)?;
    let (options, next) = match kind {
        Encapsulation::Geneve => {
            let options = usize::from(rest.get(UDP_BYTES)? & 0x3f) * 4;
            let next = match be_u16(rest, UDP_BYTES + 2)? {
                0x6558 => Header::Ethernet,
                kind => Header::Type(kind),
            };
            (options, next)
        }
        _ => (0, Header::Ethernet),
    };
    Some((kind, UDP_BYTES + TUNNEL_BYTES + options, next))
}

/// Returns the length of a GRE header of version 0 in bytes, and the next header. `None` if the header has
/// another version, has routing fields, or is too short.
fn gre(rest: &[u8]) -> Option<(usize, Header)> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const NUMBER: u16 = 0x1000;
    let flags = be_u16(rest, 0)?;
    if flags & (ROUTING | 7) != 0 {
        return None;
    }
    let fields = [CHECKSUM, KEY, NUMBER].iter().filter(|flag| flags & **flag != 0).count();
    let length = 4 + 4 * fields;
    match be_u16(rest, 2)? {
        0x6558 => Some((length, Header::Ethernet)),
        // ERSPAN type II has a header of eight bytes, and always a number.
        0x88be if flags & NUMBER != 0 => Some((length + 8, Header::Ethernet)),
        kind => Some((length, Header::Type(kind))),
    }
}

/// Returns the length of a PPP header in bytes, and the next header. The fields for address and control may be
/// absent, and the protocol field may have one byte. `None` if the protocol is neither IP nor MPLS, or the
/// header is too short.
fn ppp(rest: &[u8]) -> Option<(usize, Header)> {
    let before = if rest.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    let first = *rest.get(before)?;
    let (length, protocol) = match first & 1 {
        1 => (1, u16::from(first)),
        _ => (2, be_u16(rest, before)?),
    };
    let next = match protocol {
        0x0021 => Header::Type(ETHERTYPE_IPV4),
        0x0057 => Header::Type(ETHERTYPE_IPV6),
        0x0281 => Header::Type(0x8847),
        _ => return None,
    };
    Some((before + length, next))
}

/// Returns the length in bytes of the headers of an 802.11 data frame before its payload, and the next header.
/// `None` for other frames, and for encrypted frames.
fn wireless(rest: &[u8]) -> Option<(usize, Header)> {
    const DATA: u16 = 0x0008;
    const QOS: u16 = 0x0080;
    const NO_DATA: u16 = 0x0040;
    const BETWEEN_STATIONS: u16 = 0x0300;
    const ENCRYPTED: u16 = 0x4000;
    const ORDERED: u16 = 0x8000;
    const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];
    let control = u16::from_le_bytes(*rest.first_chunk()?);
    if control & 0x000c != DATA || control & (NO_DATA | ENCRYPTED) != 0 {
        return None;
    }
    let is_qos = control & QOS != 0;
    let fourth = if control & BETWEEN_STATIONS == BETWEEN_STATIONS { 6 } else { 0 };
    let ordered = if is_qos && control & ORDERED != 0 { 4 } else { 0 };
    let length = 24 + fourth + if is_qos { 2 } else { 0 } + ordered;
    let after = rest.get(length..)?;
    let kind = after.starts_with(&SNAP).then(|| be_u16(after, SNAP.len())).flatten()?;
    Some((length + SNAP.len() + 2, Header::Type(kind)))
}

fn be_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|pair| u16::from_be_bytes(*pair))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rxo_testkit::seg;

    use super::*;

    fn ip(v6: bool) -> Vec<u8> {
        let packet = if v6 { seg().v6() } else { seg() };
        packet.raw_ip().bytes()
    }

    fn ethernet(kind: u16, rest: &[&[u8]]) -> Vec<u8> {
        [&[2; 12][..], &kind.to_be_bytes(), &rest.concat()].concat()
    }

    /// An IPv4 header for this protocol.
    fn v4(protocol: u8) -> Vec<u8> {
        let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        header.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        header
    }

    #[test]
    fn the_inner_packet_is_found_behind_every_header() {
        use Encapsulation::{Gre, IpInIp, Mpls, Ppp, Pppoe, Tags, Wireless};
        let (four, six) = (&ip(false)[..], &ip(true)[..]);
        let whole = &ethernet(0x0800, &[four])[..];
        let wifi = [&[0x88, 1][..], &[0; 24], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], four].concat();
        let e = LinkType::ETHERNET;
        let rows = [
            (e, ethernet(0x8847, &[&[0, 0, 0, 9], &[0, 0, 1, 9], four]), Mpls),
            (e, ethernet(0x8847, &[&[0, 0, 1, 9], &[0; 4], whole]), Mpls),
            (e, ethernet(0x8100, &[&[0, 5, 0x88, 0x47], &[0, 0, 1, 9], six]), Mpls),
            (e, ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 0], &[0, 0x21], four]), Pppoe),
            (e, ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 0], &[0, 0x57], six]), Pppoe),
            (e, ethernet(0x88a8, &[&[0, 5, 0x81, 0], &[0, 6, 0x81, 0], &[0, 7, 8, 0], four]), Tags),
            (e, ethernet(0x0800, &[&v4(47), &[0, 0, 8, 0], four]), Gre),
            (e, ethernet(0x0800, &[&v4(47), &[0xb0, 0, 0x65, 0x58], &[0; 12], whole]), Gre),
            (e, ethernet(0x0800, &[&v4(47), &[0x10, 0, 0x88, 0xbe], &[0; 12], whole]), Gre),
            (e, ethernet(0x0800, &[&v4(4), four]), IpInIp),
            (e, ethernet(0x0800, &[&v4(41), six]), IpInIp),
            (e, ethernet(0x0800, &[&v4(4), &v4(47), &[0, 0, 0x86, 0xdd], six]), IpInIp),
            (LinkType(9), [&[0xff, 3, 0, 0x21], four].concat(), Ppp),
            (LinkType(9), [&[0x21], four].concat(), Ppp),
            (LinkType(105), wifi.clone(), Wireless),
            (LinkType(127), [&[0, 0, 8, 0, 0, 0, 0, 0], &wifi[..]].concat(), Wireless),
            (LinkType::RAW, [&v4(47)[..], &[0, 0, 8, 0], four].concat(), Gre),
        ];
        for (link, bytes, kind) in rows {
            let (found, ip) = strip(link, &bytes).unwrap_or_else(|| panic!("{kind:?}"));
            let inner = &bytes[ip.unwrap()..];
            assert!(
                found == kind && (inner == four || inner == six),
                "{kind:?}: {found:?}, {ip:?}"
            );
        }
    }

    #[test]
    fn ordinary_packets_have_no_encapsulation() {
        for bytes in [seg().bytes(), seg().v6().bytes(), seg().vlan(3).bytes()] {
            assert_eq!(strip(LinkType::ETHERNET, &bytes), None);
        }
        let encrypted = [&[0x08, 0x41][..], &[0; 60]].concat();
        assert_eq!(strip(LinkType(105), &encrypted), Some((Encapsulation::Wireless, None)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            link in prop::sample::select(vec![1, 9, 50, 101, 105, 113, 127, 276]),
            bytes in prop::collection::vec(any::<u8>(), 0..120),
        ) {
            if let Some((_, Some(at))) = strip(LinkType(link), &bytes) {
                prop_assert!(at <= bytes.len());
                inner(LinkKind::Ethernet, &bytes, at);
            }
        }
    }
}
