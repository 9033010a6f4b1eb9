//! The fields of an IP header that differ from segment to segment.

use crate::checksum::Sum;
use crate::{PROTOCOL_TCP, ipv4, ipv6};

/// What the IP headers of all segments follow from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip {
    is_v4: bool,
    /// The identification of the first segment, and by how much it counts on.
    id: u16,
    pub(super) id_step: u16,
    /// The sum of the IPv4 header without length, identification and checksum.
    sum: Sum,
    /// The sum of the pseudo-header without the length.
    pub(super) pseudo: Sum,
}

/// As much of an IP header as differs.
type Start = [u8; ipv4::MIN_HEADER_BYTES];

impl Ip {
    /// Reads `header`: the whole IP header, with options or extension headers. `None` if it is not an IP
    /// header.
    #[inline]
    pub(super) fn read(header: &[u8]) -> Option<Self> {
        let start: &Start = header.first_chunk()?;
        let is_v4 = start[0] >> 4 == 4;
        let addresses = match start[0] >> 4 {
            4 => header.get(12..20)?,
            6 => header.get(8..ipv6::HEADER_BYTES)?,
            _ => return None,
        };
        // Length and identification are neighbours.
        let own = Sum::of(&start[2..6]) + Sum::of(&start[10..12]);
        Some(Self {
            is_v4,
            id: u16::from_be_bytes([start[4], start[5]]),
            id_step: 1,
            sum: if is_v4 { Sum::of(header) - own } else { Sum::ZERO },
            pseudo: Sum::of(addresses) + Sum::word(PROTOCOL_TCP.into()),
        })
    }

    /// Writes the fields of the segment `index` into `header`, a copy of the header. Its packet has
    /// `packet_bytes` bytes. `None`, and nothing is written, if `header` is too short.
    #[inline(always)]
    pub(super) fn write(&self, header: &mut [u8], index: usize, packet_bytes: u16) -> Option<()> {
        let header: &mut Start = header.first_chunk_mut()?;
        if self.is_v4 {
            let id = self.id.wrapping_add((index as u16).wrapping_mul(self.id_step));
            let checksum = (self.sum + Sum::word(packet_bytes) + Sum::word(id)).checksum();
            header[2..4].copy_from_slice(&packet_bytes.to_be_bytes());
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            let payload_bytes = packet_bytes.saturating_sub(ipv6::HEADER_BYTES as u16);
            header[4..6].copy_from_slice(&payload_bytes.to_be_bytes());
        }
        Some(())
    }
}
