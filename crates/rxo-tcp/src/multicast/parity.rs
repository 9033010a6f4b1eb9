//! Parity packets: one of them repairs a different lost segment at each receiver.
//!
//! The sender cuts the stream into blocks of up to [`ParityBlock::MOST_SEGMENTS`] segments. An erasure code
//! computes a parity packet from all segments of a block. A receiver that lacks n segments of a block,
//! whichever these are, can restore the block from any n parity packets. This module defines the packet format,
//! which the sender (`blocks.rs`) and the receivers (`restore.rs`) share. The owner of the connections
//! implements the erasure code.

use alloc::vec::Vec;

use rxo_wire::SeqNumber;

/// A block of the stream, from which parity packets are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityBlock {
    /// The sequence number of the first byte of the block.
    pub seq: SeqNumber,
    /// The length of the block in bytes; not 0.
    pub bytes: u32,
    /// The data of each segment in bytes, not 0. The last segment of the block may be shorter.
    pub segment_bytes: u16,
}

impl ParityBlock {
    /// The largest number of segments in a block.
    pub const MOST_SEGMENTS: usize = 64;
    /// The largest number of parity packets for a block.
    pub const MOST_PARITY: usize = 32;

    /// Returns the number of segments in the block.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.bytes.div_ceil(self.segment_bytes.max(1).into()) as usize
    }

    /// Returns the sequence number of the segment with this `index`, and its length in bytes. `index` must be
    /// less than [`ParityBlock::segments`].
    #[must_use]
    pub fn segment(&self, index: usize) -> (SeqNumber, usize) {
        let size = u32::from(self.segment_bytes);
        let start = size * index as u32;
        (self.seq + start, size.min(self.bytes.saturating_sub(start)) as usize)
    }

    /// Returns the length of one symbol of the erasure code in bytes: the data of a segment, padded by zeros
    /// to an even length.
    #[must_use]
    pub fn symbol_bytes(&self) -> usize {
        usize::from(self.segment_bytes).next_multiple_of(2)
    }

    /// Returns the sequence number after the last byte of the block.
    pub(super) fn end(&self) -> SeqNumber {
        self.seq + self.bytes
    }

    fn is_valid(&self) -> bool {
        self.segment_bytes > 0 && (1..=Self::MOST_SEGMENTS).contains(&self.segments())
    }
}

/// A parity packet: the payload of a UDP datagram from the sender's port to the group's address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parity<'a> {
    /// The block from which the packet was computed.
    pub block: ParityBlock,
    /// The number of this packet among the parity packets of its block, less than
    /// [`ParityBlock::MOST_PARITY`].
    pub index: u8,
    /// The TSval of the sender's clock when the packet was sent, as in a segment.
    pub time_value: u32,
    /// The symbol that the erasure code has computed: [`ParityBlock::symbol_bytes`] bytes.
    pub symbol: &'a [u8],
}

impl<'a> Parity<'a> {
    /// The length of a parity packet's header, which precedes the symbol, in bytes.
    pub const HEADER_BYTES: usize = HEADER_BYTES;

    /// Reads the payload of a datagram. `None` if it is no valid parity packet.
    #[must_use]
    pub fn read(payload: &'a [u8]) -> Option<Self> {
        let (head, symbol) = payload.split_first_chunk::<HEADER_BYTES>()?;
        let [s0, s1, s2, s3, t0, t1, t2, t3, b0, b1, b2, b3, g0, g1, index, VERSION] = *head else {
            return None;
        };
        let block = ParityBlock {
            seq: SeqNumber(u32::from_be_bytes([s0, s1, s2, s3])),
            bytes: u32::from_be_bytes([b0, b1, b2, b3]),
            segment_bytes: u16::from_be_bytes([g0, g1]),
        };
        let is_valid = block.is_valid()
            && usize::from(index) < ParityBlock::MOST_PARITY
            && symbol.len() == block.symbol_bytes();
        let time_value = u32::from_be_bytes([t0, t1, t2, t3]);
        is_valid.then_some(Self { block, index, time_value, symbol })
    }

    /// Appends this parity packet to `out`, as the payload of a datagram.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.block.seq.0.to_be_bytes());
        out.extend_from_slice(&self.time_value.to_be_bytes());
        out.extend_from_slice(&self.block.bytes.to_be_bytes());
        out.extend_from_slice(&self.block.segment_bytes.to_be_bytes());
        out.extend_from_slice(&[self.index, VERSION]);
        out.extend_from_slice(self.symbol);
    }
}

const HEADER_BYTES: usize = 16;
/// The version of the packet format and of the erasure code.
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_packet_reads_as_it_was_written(
            seq: u32, time_value: u32, segment_bytes in 1_u16..9_000, segments in 1_u32..=64,
            shorter in 0_u32..9_000, index in 0_u8..32,
        ) {
            let size = u32::from(segment_bytes);
            let bytes = size * segments - shorter % size;
            let block = ParityBlock { seq: SeqNumber(seq), bytes, segment_bytes };
            let symbol = alloc::vec![7; block.symbol_bytes()];
            let parity = Parity { block, index, time_value, symbol: &symbol };
            let mut payload = Vec::new();
            parity.write(&mut payload);
            prop_assert_eq!(Parity::read(&payload), Some(parity));
            let all: usize = (0..block.segments()).map(|index| block.segment(index).1).sum();
            prop_assert_eq!((all, block.segments()), (bytes as usize, segments as usize));
            payload.pop();
            prop_assert_eq!(Parity::read(&payload), None);
        }

        #[test]
        fn no_bytes_cause_a_panic(payload: Vec<u8>) {
            let _ = Parity::read(&payload);
        }
    }
}
