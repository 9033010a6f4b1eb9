//! The fields of an IP header that differ from segment to segment.

use crate::checksum::Sum;
use crate::{ipv4, ipv6};

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

impl Ip {
    /// Reads `header`: the whole IP header, with options or extension headers, of a packet of the transport
    /// `protocol`. `None` if it is not an IP
    /// header.
    #[inline]
    pub(super) fn read(header: &[u8], protocol: u8) -> Option<Self> {
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
            pseudo: Sum::of(addresses) + Sum::word(protocol.into()),
        })
    }

    /// What a packet of `bytes` bytes has in the length field of its header: its own length for IPv4, that
    /// of its payload for IPv6. `None` if the field cannot say it.
    #[inline(always)]
    pub(super) fn length(&self, bytes: usize) -> Option<Length> {
        let counted = if self.is_v4 { bytes } else { bytes.checked_sub(ipv6::HEADER_BYTES)? };
        let field = u16::try_from(counted).ok()?;
        Some(Length { field, sum: self.sum + Sum::word(field) })
    }

    /// Writes the fields of the segment `index` into `header`, a copy of the header.
    #[inline(always)]
    pub(super) fn write(&self, header: &mut Start, index: usize, length: Length) {
        let at = if self.is_v4 { 2 } else { 4 };
        header[at..at + 2].copy_from_slice(&length.field.to_be_bytes());
        self.write_id(header, index, length);
    }

    /// Writes the fields in which the headers of packets of this length differ: for IPv4 identification and
    /// checksum.
    #[inline(always)]
    pub(super) fn write_id(&self, header: &mut Start, index: usize, length: Length) {
        if self.is_v4 {
            let id = self.id.wrapping_add((index as u16).wrapping_mul(self.id_step));
            let checksum = (length.sum + Sum::word(id)).checksum();
            header[4..6].copy_from_slice(&id.to_be_bytes());
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// What the length of a packet decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// The field.
    field: u16,
    /// The sum of the IPv4 header without identification and checksum.
    sum: Sum,
}

/// As much of an IP header as differs.
pub(super) type Start = [u8; ipv4::MIN_HEADER_BYTES];
