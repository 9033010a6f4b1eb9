//! What differs between the packets of one flow in the first bytes of their IP header, for both versions.
//!
//! Separate from [`parse`](crate::parse()) for those who know already where the headers are.

use crate::ipv6;

/// The traffic class of the packet that `packet` begins with, ECN bits included, and its length in bytes with
/// the IP header, as that header says it. Whatever is not version 4 is read as version 6. `None` if there are
/// fewer than 6 bytes; nothing else is checked.
#[inline(always)]
#[must_use]
pub fn class_and_length(packet: &[u8]) -> Option<(u8, usize)> {
    let start: &[u8; 6] = packet.first_chunk()?;
    Some(if start[0] >> 4 == 4 {
        (start[1], usize::from(u16::from_be_bytes([start[2], start[3]])))
    } else {
        let payload_bytes = usize::from(u16::from_be_bytes([start[4], start[5]]));
        (start[0] << 4 | start[1] >> 4, ipv6::HEADER_BYTES + payload_bytes)
    })
}
