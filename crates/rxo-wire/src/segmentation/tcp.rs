//! The fields of a TCP header that differ from segment to segment.

use super::{Checksums, Part};
use crate::checksum::{Sum, Summer};
use crate::tcp::{CHECKSUM_AT, FLAGS_AT, FixedHeader, MIN_HEADER_BYTES};
use crate::{SeqNumber, TcpFlags};

/// What the TCP headers of all segments follow from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tcp {
    seq: SeqNumber,
    flags: TcpFlags,
    /// The sum of the pseudo-header without the length; for complete checksums, with that of the TCP
    /// header without sequence number, flags and checksum.
    sum: Sum,
    /// `None` if a device completes the checksums.
    summer: Option<Summer>,
}

impl Tcp {
    /// Reads `header`: the whole TCP header, options included. `None` if it is too short.
    #[inline]
    pub(super) fn read(header: &[u8], pseudo: Sum, checksums: Checksums) -> Option<Self> {
        let fixed = FixedHeader::of(header)?;
        let (sum, summer) = match checksums {
            Checksums::Partial => (pseudo, None),
            Checksums::Complete(summer) => {
                let flags = u16::from(header[FLAGS_AT]);
                let own = Sum::longs([fixed.seq().0, flags.into(), fixed.checksum().into()]);
                (pseudo + Sum::of(header) - own, Some(summer))
            }
        };
        Some(Self { seq: fixed.seq(), flags: fixed.flags(), sum, summer })
    }

    /// Writes the fields of the segment `part` into `header`, a copy of the header. `segment_bytes`
    /// counts header and payload. `None`, and nothing is written, if `header` is too short.
    #[inline(always)]
    pub(super) fn write(
        &self,
        header: &mut [u8],
        part: Part,
        segment_bytes: u32,
        payload: &[&[u8]],
    ) -> Option<()> {
        let header: &mut [u8; MIN_HEADER_BYTES] = header.first_chunk_mut()?;
        let seq = self.seq + part.offset as u32;
        let flags = part.flags(self.flags).bits() as u8;
        let checksum = match self.summer {
            None => (self.sum + Sum::long(segment_bytes)).fold(),
            Some(summer) => {
                let own = Sum::longs([segment_bytes, seq.0, flags.into()]);
                (self.sum + own + sum_of(payload, summer)).checksum()
            }
        };
        header[4..8].copy_from_slice(&seq.0.to_be_bytes());
        header[FLAGS_AT] = flags;
        header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        Some(())
    }
}

/// The sum of payload in several pieces.
#[inline(always)]
fn sum_of(pieces: &[&[u8]], summer: Summer) -> Sum {
    let (mut sum, mut offset) = (Sum::ZERO, 0);
    for piece in pieces {
        sum += summer.sum(piece).at(offset);
        offset += piece.len();
    }
    sum
}
