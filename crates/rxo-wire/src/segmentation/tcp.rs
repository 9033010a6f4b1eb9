//! The fields of a TCP header that differ from segment to segment.

use super::layer::{Layer, sum_of};
use super::{Checksums, Part};
use crate::checksum::{Sum, Summer};
use crate::tcp::{CHECKSUM_AT, FLAGS_AT, FixedHeader, MIN_HEADER_BYTES};
use crate::{PROTOCOL_TCP, SeqNumber, TcpFlags};

/// State from which the TCP headers of all segments are computed.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    seq: SeqNumber,
    flags: TcpFlags,
    /// The sum of the pseudo-header without the length. For complete checksums it includes the TCP header
    /// without sequence number, flags and checksum.
    sum: Sum,
    /// The code that sums the payload for complete checksums; `None` if a device completes the checksums.
    summer: Option<Summer>,
}

impl Layer for Tcp {
    type Start = [u8; MIN_HEADER_BYTES];
    const PROTOCOL: u8 = PROTOCOL_TCP;

    #[inline]
    fn read(header: &[u8], pseudo: Sum, checksums: Checksums) -> Option<Self> {
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
        header: &mut Self::Start,
        part: Part,
        (sum, seed): (Sum, u16),
        payload: impl IntoIterator<Item = &'p [u8]>,
    ) {
        header[FLAGS_AT] = part.flags(self.flags).bits() as u8;
        header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&seed.to_be_bytes());
        self.write_middle(header, part, sum, payload);
    }

    #[inline(always)]
    fn write_middle<'p>(
        &self,
        header: &mut Self::Start,
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
