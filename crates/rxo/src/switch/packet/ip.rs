//! Parses IPv4 (RFC 791) and IPv6 (RFC 8200) packets, up to the upper-layer header.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rxo_wire::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_IGMP, PROTOCOL_UDP};

/// Maximum number of extension headers that are parsed in one packet.
pub(super) const MOST_HEADERS: usize = 16;

pub(in crate::switch) const ICMP: u8 = PROTOCOL_ICMP;
pub(in crate::switch) const ICMPV6: u8 = PROTOCOL_ICMPV6;
pub(in crate::switch) const IGMP: u8 = PROTOCOL_IGMP;
pub(in crate::switch) const UDP: u8 = PROTOCOL_UDP;

/// The addresses and the upper-layer part of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::switch) struct Ip<'f> {
    pub(in crate::switch) source: IpAddr,
    pub(in crate::switch) destination: IpAddr,
    pub(in crate::switch) upper: Upper<'f>,
}

/// The upper-layer part of a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::switch) enum Upper<'f> {
    /// A whole packet, or the first fragment of a packet.
    First {
        protocol: u8,
        /// `true` if the packet is a first fragment, which more fragments follow.
        is_fragment: bool,
        /// The bytes from the start of the upper-layer header to the end of the packet.
        bytes: &'f [u8],
    },
    /// A later fragment of a packet, which contains no upper-layer header.
    Later,
}

impl<'f> Ip<'f> {
    /// Parses an IPv4 packet; `None` if its headers are incomplete.
    pub(super) fn read_v4(packet: &'f [u8]) -> Option<Self> {
        let fixed: &[u8; 20] = packet.first_chunk()?;
        let header_bytes = usize::from(fixed[0] & 0x0f) * 4;
        if fixed[0] >> 4 != 4 || header_bytes < fixed.len() {
            return None;
        }
        let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        let behind = without_padding(packet, header_bytes, total).get(header_bytes..)?;
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        let is_fragment = fragment & 0x2000 != 0;
        let upper = match (fragment & 0x1fff, fixed[9]) {
            (0, AUTHENTICATION) if is_fragment => return None,
            (0, AUTHENTICATION) => follow(AUTHENTICATION, behind)?,
            (0, protocol) => Upper::First { protocol, is_fragment, bytes: behind },
            _ => Upper::Later,
        };
        let [.., a, b, c, d, e, f, g, h] = *fixed;
        let (source, destination) = (Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h));
        Some(Self { source: source.into(), destination: destination.into(), upper })
    }

    /// Parses an IPv6 packet; `None` if its chain of headers is incomplete. RFC 7112, section 5, forbids an
    /// incomplete chain even in a first fragment.
    pub(super) fn read_v6(packet: &'f [u8]) -> Option<Self> {
        let fixed: &[u8; 40] = packet.first_chunk()?;
        let (source, destination) = fixed[8..].split_first_chunk::<16>()?;
        let destination = destination.first_chunk::<16>()?;
        if fixed[0] >> 4 != 6 {
            return None;
        }
        let total = 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let upper = follow(fixed[6], without_padding(packet, 40, total).get(40..)?)?;
        let [source, destination] = [source, destination].map(|ip| Ipv6Addr::from(*ip).into());
        Some(Self { source, destination, upper })
    }
}

/// Returns the packet without the padding that the link added. `total` is the length by the packet's header, in
/// bytes. Returns the packet unchanged if `total` exceeds the length of the frame, or is not greater than
/// `header_bytes`. The second case means that the packet is too large for the length field.
fn without_padding(packet: &[u8], header_bytes: usize, total: usize) -> &[u8] {
    packet.get(..total).filter(|_| total > header_bytes).unwrap_or(packet)
}

/// Follows the extension headers; the first has the type `next`. Returns `None` if the headers end early or are
/// too many. Also returns `None` if a first fragment has further extension headers after its fragment header: a
/// receiver that accepts overlapping fragments would read the upper-layer header from a later fragment, which
/// cannot be checked. Without such further headers, the upper-layer header begins the first fragment, and only
/// another first fragment can overlap it.
fn follow(mut next: u8, mut bytes: &[u8]) -> Option<Upper<'_>> {
    let mut is_fragment = false;
    for _ in 0..=MOST_HEADERS {
        if is_fragment && is_extension(next) {
            return None;
        }
        let header_bytes = match next {
            FRAGMENT => {
                let header: &[u8; 8] = bytes.first_chunk()?;
                let field = u16::from_be_bytes([header[2], header[3]]);
                if field & 0xfff8 != 0 {
                    return Some(Upper::Later);
                }
                is_fragment |= field & 1 != 0;
                header.len()
            }
            // Counts units of 4 bytes, minus 2 (RFC 4302, section 2.2). The others count units of 8, minus 1.
            AUTHENTICATION => (usize::from(*bytes.get(1)?) + 2) * 4,
            other if is_extension(other) => (usize::from(*bytes.get(1)?) + 1) * 8,
            protocol => return Some(Upper::First { protocol, is_fragment, bytes }),
        };
        next = *bytes.first()?;
        bytes = bytes.get(header_bytes..)?;
    }
    None
}

/// Returns `true` for the extension headers of IPv6 (RFC 7045, section 4), except those of encryption and of
/// experiments.
const fn is_extension(next: u8) -> bool {
    matches!(
        next,
        HOP_BY_HOP
            | ROUTING
            | FRAGMENT
            | AUTHENTICATION
            | DESTINATION
            | MOBILITY
            | HOST_IDENTITY
            | SHIM6
    )
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;
