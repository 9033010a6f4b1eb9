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

    /// The sum of the header and the pseudo-header of a segment with `bytes` bytes, header and payload, without
    /// sequence number, flags and checksum; for partial checksums that of the pseudo-header.
    #[inline(always)]
    pub(super) fn sum(&self, bytes: u32) -> Sum {
        self.sum + Sum::long(bytes)
    }

    /// Writes the fields of the segment `part` into `header`, a copy of the header. `sum` is what
    /// [`Tcp::sum`] gives for its length, `seed` the same folded.
    #[inline(always)]
    pub(super) fn write<'p>(
        &self,
        header: &mut Start,
        part: Part,
        (sum, seed): (Sum, u16),
        payload: impl IntoIterator<Item = &'p [u8]>,
    ) {
        header[FLAGS_AT] = part.flags(self.flags).bits() as u8;
        header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&seed.to_be_bytes());
        self.write_seq(header, part, sum, payload);
    }

    /// Writes the fields in which the headers of segments with the same flags and length differ: the sequence
    /// number and a complete checksum.
    #[inline(always)]
    pub(super) fn write_seq<'p>(
        &self,
        header: &mut Start,
        part: Part,
        sum: Sum,
        payload: impl IntoIterator<Item = &'p [u8]>,
    ) {
        let seq = self.seq + part.offset as u32;
        header[4..8].copy_from_slice(&seq.0.to_be_bytes());
        if let Some(summer) = self.summer {
            let own = Sum::longs([seq.0, header[FLAGS_AT].into()]);
            let checksum = (sum + own + sum_of(payload, summer)).checksum();
            header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// As much of a TCP header as differs.
pub(super) type Start = [u8; MIN_HEADER_BYTES];

/// The sum of payload in several pieces.
#[inline(always)]
fn sum_of<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, summer: Summer) -> Sum {
    let (mut sum, mut offset) = (Sum::ZERO, 0);
    for piece in pieces {
        sum += summer.sum(piece).at(offset);
        offset += piece.len();
    }
    sum
}
