//! Reads the IPv6 header and its extension headers (RFC 8200).

use crate::FlowKey;
use crate::parse::{Ip, IpHeader, IpVersion, Malformed};

pub(crate) const HEADER_BYTES: usize = 40;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// The type of a one-byte padding option in a destination options header (RFC 8200 section 4.2, RFC 6275
/// section 6.3).
const PAD1: u8 = 0;
const HOME_ADDRESS: u8 = 201;
/// The maximum number of extension headers that the loop parses. Real packets have fewer.
const MAX_EXTENSIONS: usize = 8;

/// Reads the IPv6 header and its extension headers at the start of `packet`. `vlans` is the result of
/// `VlanStack::key`.
#[inline]
pub(crate) fn read(packet: &[u8], vlans: u32) -> Result<IpHeader, Malformed> {
    let fixed: &[u8; HEADER_BYTES] = packet.first_chunk().ok_or(Malformed::Truncated)?;
    if fixed[0] >> 4 != 6 {
        return Err(Malformed::Version);
    }
    let first = u32::from_be_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
    let total = HEADER_BYTES + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let addresses = fixed.last_chunk().ok_or(Malformed::Truncated)?;
    let view = IpHeader {
        ip: Ip {
            version: IpVersion::V6,
            traffic_class: (first >> 20) as u8,
            hop_limit: fixed[7],
            flow_label: first & 0x000f_ffff,
            id: 0,
            dont_fragment: true,
            reserved_bit: false,
            has_options: false,
            has_odd_extensions: false,
            checksum_ok: true,
        },
        addresses: FlowKey::v6(addresses, 0, vlans),
        protocol: fixed[6],
        header: HEADER_BYTES,
        total: if total > packet.len() { Err(Malformed::Truncated) } else { Ok(total) },
        is_fragment: false,
    };
    Ok(if is_extension_header(view.protocol) { walk(packet, view) } else { view })
}

/// Follows the chain of extension headers in `packet`, and returns `view` updated with the transport protocol and
/// offset. A header beyond the end of the packet is a length error; a fragment header ends the chain.
#[cold]
fn walk(packet: &[u8], mut view: IpHeader) -> IpHeader {
    view.ip.has_options = true;
    for _ in 0..=MAX_EXTENSIONS {
        if !is_extension_header(view.protocol) {
            return view;
        }
        let Some([next, length]) = packet.get(view.header..view.header + 2) else {
            view.total = Err(Malformed::Length);
            return view;
        };
        let bytes = match view.protocol {
            FRAGMENT => {
                view.is_fragment = true;
                return view;
            }
            // Counts units of 4 bytes, minus 2 (RFC 4302 section 2.2); the others count units of 8, minus 1.
            AUTHENTICATION => (usize::from(*length) + 2) * 4,
            _ => (usize::from(*length) + 1) * 8,
        };
        let extension = packet.get(view.header..view.header + bytes).unwrap_or_default();
        view.ip.has_odd_extensions |= is_unsupported(view.protocol, extension);
        view.protocol = *next;
        view.header += bytes;
    }
    view.total = Err(Malformed::Length);
    view
}

/// Returns `true` unless the extension header is hop-by-hop options, or destination options without a Home
/// Address.
fn is_unsupported(protocol: u8, extension: &[u8]) -> bool {
    match protocol {
        HOP_BY_HOP => false,
        DESTINATION => has_home_address(extension.get(2..).unwrap_or_default()),
        _ => true,
    }
}

/// Returns `true` if a destination options header contains a Home Address (RFC 6275 section 6.3) or an
/// invalid length.
fn has_home_address(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        options = match (*kind, rest) {
            (PAD1, _) => rest,
            (HOME_ADDRESS, _) | (_, []) => return true,
            (_, [length, data @ ..]) => match data.get(usize::from(*length)..) {
                Some(after) => after,
                None => return true,
            },
        };
    }
    false
}

/// Returns `true` if this next-header value is an extension header (RFC 8200 section 4) that
/// [`parse`](crate::parse()) skips: hop-by-hop, routing, fragment, authentication or destination options.
#[inline]
#[must_use]
pub const fn is_extension_header(protocol: u8) -> bool {
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION)
}
