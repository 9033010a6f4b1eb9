//! The fields of an IP header that differ from segment to segment.

use crate::checksum::Sum;
use crate::{ipv4, ipv6};

/// State from which the IP headers of all segments are computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip {
    is_v4: bool,
    /// The IPv4 identification of the first segment.
    id: u16,
    pub(super) id_step: u16,
    /// The sum of the IPv4 header without length, identification and checksum.
    sum: Sum,
    /// The sum of the pseudo-header without the length.
    pub(super) pseudo: Sum,
}

impl Ip {
    /// Reads `header`: the whole IP header, with options or extension headers, of a packet of the transport
    /// `protocol`. `None` if it is not an IP header.
    #[inline]
    pub(super) fn read(header: &[u8], protocol: u8) -> Option<Self> {
        let start: &Start = header.first_chunk()?;
        let is_v4 = start[0] >> 4 == 4;
        let addresses = match start[0] >> 4 {
            4 => header.get(12..20)?,
            6 => header.get(8..ipv6::HEADER_BYTES)?,
            _ => return None,
        };
        // Length and identification are adjacent, so they are summed together.
        let own = Sum::of(&start[2..6]) + Sum::of(&start[10..12]);
        Some(Self {
            is_v4,
            id: u16::from_be_bytes([start[4], start[5]]),
            id_step: 1,
            sum: if is_v4 { Sum::of(header) - own } else { Sum::ZERO },
            pseudo: Sum::of(addresses) + Sum::word(protocol.into()),
        })
    }

    /// Returns the length field for a packet of `bytes` bytes: the whole packet for IPv4, its payload for
    /// IPv6. `None` if it exceeds 16 bits.
    #[inline]
    pub(super) fn length(&self, bytes: usize) -> Option<Length> {
        let counted = if self.is_v4 { bytes } else { bytes.checked_sub(ipv6::HEADER_BYTES)? };
        let field = u16::try_from(counted).ok()?;
        Some(Length { field, sum: self.sum + Sum::word(field) })
    }

    /// Writes the fields of the segment with number `index` into `header`, a copy of the original header.
    #[inline(always)]
    pub(super) fn write(&self, header: &mut Start, index: usize, length: Length) {
        let at = if self.is_v4 { 2 } else { 4 };
        header[at..at + 2].copy_from_slice(&length.field.to_be_bytes());
        self.write_id(header, index, length);
    }

    /// Writes only the fields that differ between packets of equal length: IPv4 identification and checksum.
    #[inline]
    pub(super) fn write_id(&self, header: &mut Start, index: usize, length: Length) {
        if self.is_v4 {
            let id = self.id.wrapping_add((index as u16).wrapping_mul(self.id_step));
            let checksum = (length.sum + Sum::word(id)).checksum();
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// The values that depend only on the length of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// The value of the IP length field.
    field: u16,
    /// The sum of the IPv4 header, with the length field but without identification and checksum.
    sum: Sum,
}

/// The start of an IP header, which contains all fields that are changed.
pub(super) type Start = [u8; ipv4::MIN_HEADER_BYTES];
