//! The packet in a frame, parsed as far as guards and snooping need: ARP, or IP up to the upper-layer header.
//!
//! This module is separate from `rxo_wire::parse`, which parses only packets that can be coalesced. A guard
//! must be sure that no frame of a guest contains a message that only others may send. So this module follows
//! VLAN tags, SNAP headers and extension headers to their end, as the most tolerant receiver would. A frame
//! that ends before the upper-layer header is [`Packet::Malformed`] (RFC 7113, section 3; RFC 7112).
//!
//! # Contract
//! Nothing panics or allocates, whatever bytes a frame contains. The work is bounded by [`MOST_TAGS`] and
//! [`ip::MOST_HEADERS`].

mod arp;
mod ip;

pub(super) use arp::Arp;
pub(super) use ip::{ICMP, ICMPV6, IGMP, Ip, UDP, Upper};

/// Maximum number of VLAN tags of a frame.
const MOST_TAGS: usize = 8;

/// The packet in a frame.
#[derive(Debug)]
pub(super) enum Packet<'f> {
    /// ARP or RARP for IPv4 over Ethernet.
    Arp(Arp),
    /// IPv4 or IPv6.
    Ip(Ip<'f>),
    /// Another protocol.
    Other,
    /// A frame that claims to be ARP or IP, but ends early, contradicts itself, or has too many headers to follow.
    Malformed,
}

impl<'f> Packet<'f> {
    /// Parses the packet after the link header of a frame.
    pub(super) fn read(frame: &'f [u8]) -> Self {
        let Some((ethertype, packet)) = network(frame) else { return Self::Malformed };
        let read = match ethertype {
            ARP => Arp::read(packet, false).map(Self::Arp),
            RARP => Arp::read(packet, true).map(Self::Arp),
            IPV4 => Ip::read_v4(packet).map(Self::Ip),
            IPV6 => Ip::read_v6(packet).map(Self::Ip),
            _ => Some(Self::Other),
        };
        read.unwrap_or(Self::Malformed)
    }
}

/// Returns the type of the packet and its bytes, after all tags; `None` if the frame ends before the packet begins.
fn network(frame: &[u8]) -> Option<(u16, &[u8])> {
    let mut rest = frame.get(ADDRESSES_BYTES..)?;
    for _ in 0..=MOST_TAGS {
        let (ethertype, behind) = rest.split_first_chunk()?;
        let ethertype = u16::from_be_bytes(*ethertype);
        if !TAG_TYPES.contains(&ethertype) {
            return Some(if ethertype < LEAST_TYPE { snap(behind) } else { (ethertype, behind) });
        }
        rest = behind.get(TAG_BYTES..)?;
    }
    None
}

/// Returns the type and the packet of an IEEE 802.3 frame, which has a length in place of the type. Some
/// systems accept IP and ARP after a SNAP header (RFC 1042). For any other 802.3 frame returns type 0, because
/// a guard need not check it.
fn snap(behind: &[u8]) -> (u16, &[u8]) {
    match behind {
        [0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, high, low, packet @ ..] => {
            (u16::from_be_bytes([*high, *low]), packet)
        }
        _ => (0, behind),
    }
}

const ADDRESSES_BYTES: usize = 12;
/// The length of a tag after its type: priority and identifier.
const TAG_BYTES: usize = 2;
/// The types of VLAN tags: 802.1Q, 802.1ad, and the type that was common before 802.1ad.
const TAG_TYPES: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// The smallest type; a smaller number is a length (IEEE 802.3, clause 3.2.6).
const LEAST_TYPE: u16 = 0x600;
const IPV4: u16 = rxo_wire::ETHERTYPE_IPV4;
const IPV6: u16 = rxo_wire::ETHERTYPE_IPV6;
const ARP: u16 = 0x0806;
const RARP: u16 = 0x8035;

#[cfg(test)]
mod tests;
