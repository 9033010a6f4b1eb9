//! Reads traffic class and length of a packet, for both IP versions.
//!
//! Separate from [`parse`](crate::parse()) for callers that already know the offset of the IP header.

use crate::ipv6;

/// Returns two values from the IP header at the start of `packet`: the traffic class (with the ECN bits), and
/// the length of the whole packet in bytes. Every version but 4 is read as version 6. `None` if there are fewer
/// than 6 bytes; nothing else is checked.
#[inline]
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
