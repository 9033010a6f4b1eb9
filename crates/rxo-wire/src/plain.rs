//! Recognises ordinary TCP segments in a few instructions.
//!
//! Most received packets are ordinary: no IP options, not a fragment, no flag but ACK, no option but the
//! timestamp at its usual offset. [`plain_v4`] and [`plain_v6`] recognise such packets and read the fields that a
//! flow table needs. [`parse`](crate::parse()) parses all other packets. Separate because this is a fast path of
//! `parse`; tests compare the results of both.

use crate::{FlowKey, PROTOCOL_TCP, SeqNumber, ipv4, ipv6, tcp};

/// The fields of a plain segment: an ordinary TCP segment without unusual options and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The flow key of the plain segment.
    pub key: FlowKey,
    /// The sequence number (SEG.SEQ) of the segment.
    pub seq: SeqNumber,
    /// The length of IP and TCP header together, in bytes.
    pub header_bytes: u32,
    /// The length of the payload, in bytes; 0 for a pure ACK.
    pub payload_bytes: u32,
}

const ACK: u8 = 0x10;
/// The value of the byte with the data offset in a TCP header without options.
const OFFSET_BARE: u8 = 0x50;
const OFFSET_TIMESTAMP: u8 = 0x80;
const TIMESTAMP_BYTES: usize = 12;
const ALIGNED_TIMESTAMP: [u8; 4] = [1, 1, 8, 10];

const V4_BYTES: usize = ipv4::MIN_HEADER_BYTES + tcp::MIN_HEADER_BYTES;
const V6_BYTES: usize = ipv6::HEADER_BYTES + tcp::MIN_HEADER_BYTES;

/// Reads a TCP segment from a packet that begins with an IPv4 header, if it is plain. `vlan` is the result of
/// [`crate::VlanStack::key`]. `None` means only that the packet is not plain. Does not verify the header
/// checksum; see [`plain_v4_checksum`].
#[inline(always)]
#[must_use]
pub fn plain_v4(packet: &[u8], vlan: u32) -> Option<Plain> {
    let headers: &[u8; V4_BYTES] = packet.first_chunk()?;
    let total = usize::from(u16::from_be_bytes([headers[2], headers[3]]));
    // Only version 4 with a header of 20 bytes; neither a fragment nor the reserved bit.
    let fragment = u16::from_ne_bytes([headers[6] & 0xbf, headers[7]]);
    if headers[0] != 0x45 || fragment != 0 || headers[9] != PROTOCOL_TCP || total > packet.len() {
        return None;
    }
    let key = plain_v4_key(packet, vlan)?;
    segment(packet, headers.last_chunk()?, ipv4::MIN_HEADER_BYTES, total, key)
}

/// Returns the flow key of an IPv4 packet that may be plain. Checks only a few bytes: it returns a key for every
/// packet that [`plain_v4`] accepts, and for some other packets. `None` if the packet is certainly not plain.
#[inline(always)]
#[must_use]
pub fn plain_v4_key(packet: &[u8], vlan: u32) -> Option<FlowKey> {
    let headers: &[u8; V4_BYTES] = packet.first_chunk()?;
    if headers[0] != 0x45 || headers[9] != PROTOCOL_TCP || headers[33] != ACK {
        return None;
    }
    let word = |at: usize| {
        u32::from_be_bytes([headers[at], headers[at + 1], headers[at + 2], headers[at + 3]])
    };
    Some(FlowKey::v4(word(12), word(16), word(20), vlan))
}

/// Returns `true` if the header checksum of a plain IPv4 packet is right. Separate from [`plain_v4`], because
/// a caller that compares the header with an expected one need not sum it.
#[inline(always)]
#[must_use]
pub fn plain_v4_checksum(packet: &[u8]) -> bool {
    packet.first_chunk().is_some_and(ipv4::fixed_ok)
}

/// Reads a TCP segment from a packet that begins with an IPv6 header, if it is plain; see [`plain_v4`].
#[inline(always)]
#[must_use]
pub fn plain_v6(packet: &[u8], vlan: u32) -> Option<Plain> {
    let headers: &[u8; V6_BYTES] = packet.first_chunk()?;
    let total = ipv6::HEADER_BYTES + usize::from(u16::from_be_bytes([headers[4], headers[5]]));
    if headers[0] >> 4 != 6 || headers[6] != PROTOCOL_TCP || total > packet.len() {
        return None;
    }
    let key = plain_v6_key(packet, vlan)?;
    segment(packet, headers.last_chunk()?, ipv6::HEADER_BYTES, total, key)
}

/// Returns the flow key of an IPv6 packet that may be plain; see [`plain_v4_key`].
#[inline(always)]
#[must_use]
pub fn plain_v6_key(packet: &[u8], vlan: u32) -> Option<FlowKey> {
    let headers: &[u8; V6_BYTES] = packet.first_chunk()?;
    if headers[0] >> 4 != 6 || headers[6] != PROTOCOL_TCP || headers[53] != ACK {
        return None;
    }
    let addresses: &[u8; 32] = headers.get(8..)?.first_chunk()?;
    let ports = u32::from_be_bytes([headers[40], headers[41], headers[42], headers[43]]);
    Some(FlowKey::v6(addresses, ports, vlan))
}

#[inline(always)]
fn segment(
    packet: &[u8],
    tcp: &[u8; tcp::MIN_HEADER_BYTES],
    ip_bytes: usize,
    total: usize,
    key: FlowKey,
) -> Option<Plain> {
    if tcp[13] != ACK || u16::from_ne_bytes([tcp[18], tcp[19]]) != 0 {
        return None;
    }
    let bare = ip_bytes + tcp::MIN_HEADER_BYTES;
    let header_bytes = if tcp[12] == OFFSET_TIMESTAMP {
        let options: &[u8; 4] = packet.get(bare..)?.first_chunk()?;
        if *options != ALIGNED_TIMESTAMP {
            return None;
        }
        bare + TIMESTAMP_BYTES
    } else if tcp[12] == OFFSET_BARE {
        bare
    } else {
        return None;
    };
    Some(Plain {
        key,
        seq: SeqNumber(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])),
        header_bytes: header_bytes as u32,
        payload_bytes: total.checked_sub(header_bytes)? as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_zeros_are_not_plain() {
        for bytes in [&[][..], &[0; 60]] {
            assert_eq!(plain_v4(bytes, 0), None);
            assert_eq!(plain_v6(bytes, 0), None);
        }
    }
}
