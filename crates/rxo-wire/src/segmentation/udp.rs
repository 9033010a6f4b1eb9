//! The fields of a UDP header that differ from datagram to datagram.

use super::layer::{Layer, sum_of};
use super::{Checksums, Part};
use crate::PROTOCOL_UDP;
use crate::checksum::{Sum, Summer};
use crate::udp::{CHECKSUM_AT, LENGTH_AT, never_zero};

/// State from which the UDP headers of all datagrams are computed.
#[derive(Clone, Copy, Debug)]
pub struct Udp {
    /// The sum of the pseudo-header without the length; for complete checksums it includes the ports.
    sum: Sum,
    /// The code that sums the payload for complete checksums; `None` if a device completes the checksums.
    summer: Option<Summer>,
}

impl Udp {
    /// Returns the checksum of a datagram. `sum` covers everything but the UDP length. Never 0, which means
    /// no checksum (RFC 768).
    fn checksum(sum: Sum, length: u16) -> u16 {
        never_zero((sum + Sum::word(length)).checksum())
    }
}

impl Layer for Udp {
    type Start = [u8; 8];
    const PROTOCOL: u8 = PROTOCOL_UDP;

    #[inline]
    fn read(header: &[u8], pseudo: Sum, checksums: Checksums) -> Option<Self> {
        let header: &[u8; 8] = header.first_chunk()?;
        Some(match checksums {
            Checksums::Partial => Self { sum: pseudo, summer: None },
            Checksums::Complete(summer) => {
                Self { sum: pseudo + Sum::of(&header[..LENGTH_AT]), summer: Some(summer) }
            }
        })
    }

    #[inline]
    fn sum(&self, bytes: u32) -> Sum {
        self.sum + Sum::long(bytes)
    }

    #[inline]
    fn start(header: &mut [u8]) -> Option<&mut Self::Start> {
        header.first_chunk_mut()
    }

    #[inline(always)]
    fn write<'p>(
        &self,
        header: &mut [u8; 8],
        part: Part,
        (sum, seed): (Sum, u16),
        payload: impl IntoIterator<Item = &'p [u8]>,
    ) {
        let length = (header.len() + part.bytes) as u16;
        header[LENGTH_AT..CHECKSUM_AT].copy_from_slice(&length.to_be_bytes());
        header[CHECKSUM_AT..].copy_from_slice(&seed.to_be_bytes());
        self.write_middle(header, part, sum, payload);
    }

    #[inline(always)]
    fn write_middle<'p>(
        &self,
        header: &mut [u8; 8],
        part: Part,
        sum: Sum,
        payload: impl IntoIterator<Item = &'p [u8]>,
    ) {
        if let Some(summer) = self.summer {
            let length = (header.len() + part.bytes) as u16;
            let checksum = Self::checksum(sum + sum_of(payload, summer), length);
            header[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}
