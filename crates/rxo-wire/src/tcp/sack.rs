//! The blocks of a SACK option (RFC 2018, RFC 2883).

use super::Timestamp;
use crate::SeqNumber;

/// A SACK block: bytes that arrived out of order, from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// The sequence number of the block's first byte.
    pub start: SeqNumber,
    /// The sequence number after the block's last byte.
    pub end: SeqNumber,
}

impl SackBlock {
    /// Returns `true` if the block contains the byte with the sequence number `seq`.
    #[inline]
    #[must_use]
    pub const fn has(&self, seq: SeqNumber) -> bool {
        seq.is_at_or_after(self.start) && seq.is_before(self.end)
    }

    /// Returns `true` if all of `other` lies in the block.
    #[inline]
    #[must_use]
    pub const fn contains(&self, other: &Self) -> bool {
        other.start.is_at_or_after(self.start) && self.end.is_at_or_after(other.end)
    }
}

/// The blocks of one SACK option, in order; at most four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; Self::MAX],
    count: u8,
}

impl SackBlocks {
    /// Maximum number of SACK blocks that fit into a header without other options.
    pub const MAX: usize = 4;
    /// The encoded size of a block, in bytes.
    pub const BLOCK_BYTES: usize = 8;

    /// Returns the maximum number of SACK blocks that fit into a header, with a timestamp or without.
    #[inline]
    #[must_use]
    pub const fn most(has_timestamp: bool) -> usize {
        if has_timestamp { Self::MAX - 1 } else { Self::MAX }
    }

    /// Appends `block` to the SACK blocks. Does nothing if there are four already.
    #[inline]
    pub fn push(&mut self, block: SackBlock) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.count)) {
            *place = block;
            self.count += 1;
        }
    }

    /// Appends the blocks in `data`, the bytes of a SACK option after its kind and length. Does nothing if
    /// they are not whole blocks.
    pub fn push_option(&mut self, data: &[u8]) {
        let (blocks, []) = data.as_chunks() else { return };
        for block in blocks {
            let Timestamp { value: start, echo: end } = Timestamp::from_bytes(*block);
            self.push(SackBlock { start: SeqNumber(start), end: SeqNumber(end) });
        }
    }

    /// Returns the SACK blocks in order.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Returns `true` if there are no SACK blocks.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Keeps only the first `blocks` SACK blocks.
    #[inline]
    pub fn truncate(&mut self, blocks: usize) {
        self.count = self.count.min(blocks as u8);
    }

    /// Returns these SACK blocks, sorted by their distance from `seq`.
    #[must_use]
    pub fn by_distance_from(mut self, seq: SeqNumber) -> Self {
        self.blocks[..usize::from(self.count)].sort_unstable_by_key(|block| block.start - seq);
        self
    }

    /// Returns `true` if each block of `earlier` lies in one of the blocks of `self`.
    #[inline]
    #[must_use]
    pub fn cover(&self, earlier: &Self) -> bool {
        let has = |block: &SackBlock| self.as_slice().iter().any(|own| own.contains(block));
        earlier.as_slice().iter().all(has)
    }

    /// Returns `true` if the first block reports duplicate data (D-SACK), in a segment with the ACK number `ack`
    /// (RFC 2883, section 4).
    #[inline]
    #[must_use]
    pub fn has_duplicate(&self, ack: SeqNumber) -> bool {
        match self.as_slice() {
            [first, ..] if first.start.is_before(ack) => true,
            [first, second, ..] => second.contains(first),
            _ => false,
        }
    }
}
