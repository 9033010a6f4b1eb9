//! Reed-Solomon by the crate `reed-solomon-simd`: any n of the segments and parity packets of a block with n segments
//! restore the block.

use std::collections::VecDeque;
use std::fmt;

use reed_solomon_simd::{Error, ReedSolomonDecoder, ReedSolomonEncoder};
use rxo_tcp::{IncompleteBlock, ParityBlock, Text};

pub(crate) const IS_BUILT: bool = true;

/// Computes parity packets. Keeps the parity packets of the last [`MOST_BLOCKS`] blocks, because receivers may
/// need further packets later.
#[derive(Default)]
pub(crate) struct Encoder {
    coder: Option<ReedSolomonEncoder>,
    kept: VecDeque<(ParityBlock, Vec<u8>)>,
}

impl Encoder {
    /// Returns the symbol of the parity packet with the number `index` for `block`, whose data is `text`.
    /// `None` if the data is incomplete. The first call for a block computes all parity packets of the block.
    pub(crate) fn symbol(
        &mut self,
        block: &ParityBlock,
        index: u8,
        text: Text<'_>,
    ) -> Option<&[u8]> {
        let known = self.kept.iter().position(|(known, _)| known == block);
        let at = match known {
            Some(at) => at,
            None => {
                let symbols = self.encode(block, text)?;
                if self.kept.len() == MOST_BLOCKS {
                    self.kept.pop_front();
                }
                self.kept.push_back((*block, symbols));
                self.kept.len() - 1
            }
        };
        let bytes = block.symbol_bytes();
        self.kept[at].1.get(bytes * usize::from(index)..)?.get(..bytes)
    }

    fn encode(&mut self, block: &ParityBlock, mut text: Text<'_>) -> Option<Vec<u8>> {
        if text.len() != block.bytes as usize {
            return None;
        }
        let (count, bytes) = (block.segments(), block.symbol_bytes());
        let coder = match &mut self.coder {
            Some(coder) => {
                coder.reset(count, ParityBlock::MOST_PARITY, bytes).ok()?;
                coder
            }
            none => {
                none.insert(ReedSolomonEncoder::new(count, ParityBlock::MOST_PARITY, bytes).ok()?)
            }
        };
        let mut symbol = Vec::with_capacity(bytes);
        for index in 0..count {
            symbol.clear();
            let (_, segment_bytes) = block.segment(index);
            text.split_to(segment_bytes).slices().for_each(|part| symbol.extend_from_slice(part));
            symbol.resize(bytes, 0);
            coder.add_original_shard(&symbol).ok()?;
        }
        let encoded = coder.encode().ok()?;
        Some(encoded.recovery_iter().flatten().copied().collect())
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoder({} blocks)", self.kept.len())
    }
}

/// Restores the lost segments of a block. The field keeps the memory of the decoder between blocks; `None`
/// before the first block.
#[derive(Default)]
pub(crate) struct Decoder(Option<ReedSolomonDecoder>);

impl Decoder {
    /// Restores the lost segments of `incomplete`, a block that was received incompletely. `copy` copies the
    /// data of a received segment, given its index. Passes the index and the data of each restored segment to
    /// `take`. Restores nothing if the data of a received segment is missing.
    pub(crate) fn restore(
        &mut self,
        incomplete: &IncompleteBlock,
        copy: impl FnMut(usize, &mut [u8]) -> bool,
        take: impl FnMut(usize, &[u8]),
    ) {
        // An error means that too few segments are known: the sender repeats them.
        let _ = self.try_restore(incomplete, copy, take);
    }

    fn try_restore(
        &mut self,
        incomplete: &IncompleteBlock,
        mut copy: impl FnMut(usize, &mut [u8]) -> bool,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        let IncompleteBlock { block, parity, lost } = incomplete;
        let (count, bytes) = (block.segments(), block.symbol_bytes());
        let coder = match &mut self.0 {
            Some(coder) => {
                coder.reset(count, ParityBlock::MOST_PARITY, bytes)?;
                coder
            }
            none => none.insert(ReedSolomonDecoder::new(count, ParityBlock::MOST_PARITY, bytes)?),
        };
        let mut symbol = vec![0; bytes];
        for index in (0..count).filter(|index| !lost.contains(index)) {
            symbol.fill(0);
            if copy(index, &mut symbol[..block.segment(index).1]) {
                coder.add_original_shard(index, &symbol)?;
            }
        }
        for (index, symbol) in parity.iter().take(lost.len()) {
            coder.add_recovery_shard(usize::from(*index), symbol)?;
        }
        let decoded = coder.decode()?;
        for index in lost {
            let text = decoded.restored_original(*index);
            if let Some(text) = text.and_then(|text| text.get(..block.segment(*index).1)) {
                take(*index, text);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoder")
    }
}

/// Maximum number of blocks whose parity packets are kept: enough for the blocks of a send buffer of 4 MiB. The
/// parity packets of a block take about 46 kB.
const MOST_BLOCKS: usize = 48;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rxo_frame::SharedBytes;
    use rxo_tcp::SendBuffer;
    use rxo_wire::SeqNumber;

    use super::*;

    proptest! {
        /// The oracle is the block itself: whichever segments are lost, and whichever packets have come.
        #[test]
        fn lost_segments_are_restored(
            segment_bytes in 1_u16..200, segments in 1_u32..=64, shorter: u32,
            lost in prop::collection::btree_set(0_usize..64, 1..20), first in 0_u8..12,
        ) {
            let size = u32::from(segment_bytes);
            let bytes = size * segments - shorter % size;
            let block = ParityBlock { seq: SeqNumber(7), bytes, segment_bytes };
            let text: Vec<u8> = (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            let segment = |index| {
                let (seq, length) = block.segment(index);
                let start = (seq - block.seq) as usize;
                &text[start..start + length]
            };
            let mut buffer = SendBuffer::with_capacity(bytes);
            buffer.append_shared(&mut SharedBytes::from(text.clone()));
            let lost: Vec<usize> = lost.into_iter().filter(|index| *index < block.segments()).collect();
            prop_assume!(!lost.is_empty());
            let mut encoder = Encoder::default();
            let parity = (first..first + lost.len() as u8)
                .map(|index| (index, encoder.symbol(&block, index, buffer.text(0, bytes)).unwrap().to_vec()))
                .collect();
            let incomplete = IncompleteBlock { block, parity, lost: lost.clone() };
            let mut restored = Vec::new();
            let copy = |index: usize, to: &mut [u8]| {
                to.copy_from_slice(segment(index));
                true
            };
            Decoder::default().restore(&incomplete, copy, |index, text| restored.push((index, text.to_vec())));
            let expected: Vec<_> = lost.iter().map(|index| (*index, segment(*index).to_vec())).collect();
            prop_assert_eq!(restored, expected);
        }
    }
}
