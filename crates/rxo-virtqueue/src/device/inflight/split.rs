//! The record of a split ring: a state for each descriptor, and the list of the chains in the last batch.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{InflightError, Record, SIZE_AT, VERSION, VERSION_AT};
use crate::config::Layout;
use crate::memory::Mapping;

pub(super) const HEADER_BYTES: usize = 16;
pub(super) const STATE_BYTES: usize = 16;
const LAST_BATCH_HEAD_AT: usize = 12;
const USED_INDEX_AT: usize = 14;
/// The offset of the first field in a descriptor's state, in bytes: one byte, which is 1 for a chain in
/// flight, then a byte of padding. The constants below give the other fields.
const INFLIGHT_AT: usize = 0;
const NEXT_AT: usize = 6;
const COUNTER_AT: usize = 8;

/// The chains in flight of a split ring.
#[derive(Debug)]
pub(in crate::device) struct SplitInflight {
    record: Record,
    size: u16,
    /// The heads of chains that the previous device did not return, in the order in which it took them.
    again: VecDeque<u16>,
    /// The index of the available entry that the first head in `again` replaces.
    first: u16,
    counter: u64,
    last_batch_head: u16,
    /// The heads of the chains returned since the last publication.
    batch: Vec<u16>,
}

impl SplitInflight {
    /// Reads the record at `offset` in `mapping`, for a queue of `size` descriptors whose used index is
    /// `used`. Initialises an unused record.
    pub(in crate::device) fn load(
        mapping: &Arc<Mapping>,
        offset: u64,
        size: u16,
        used: u16,
    ) -> Result<Self, InflightError> {
        let record = Record::new(mapping, offset, (Layout::Split, size))?;
        let mut this = Self {
            record,
            size,
            again: VecDeque::new(),
            first: used,
            counter: 0,
            last_batch_head: 0,
            batch: Vec::with_capacity(usize::from(size)),
        };
        if this.record.is_used(size)? {
            this.finish_last_batch(used)?;
            this.find_again();
        } else {
            (0..size).for_each(|n| this.record.set_half(at(n, INFLIGHT_AT), 0));
            this.record.set_half(SIZE_AT, size);
        }
        this.record.set_half(LAST_BATCH_HEAD_AT, this.last_batch_head);
        this.record.set_half(USED_INDEX_AT, used);
        this.record.set_half(VERSION_AT, VERSION);
        Ok(this)
    }

    /// Completes the previous device's last batch, if that device was killed after it published the batch and
    /// before it recorded the publication.
    fn finish_last_batch(&mut self, used: u16) -> Result<(), InflightError> {
        let count = used.wrapping_sub(self.record.half(USED_INDEX_AT));
        let mut head = self.record.half(LAST_BATCH_HEAD_AT);
        if count > self.size {
            return Err(InflightError::Inconsistent);
        }
        for _ in 0..count {
            if head >= self.size {
                return Err(InflightError::Inconsistent);
            }
            self.record.set_half(at(head, INFLIGHT_AT), 0);
            head = self.record.half(at(head, NEXT_AT));
        }
        Ok(())
    }

    fn find_again(&mut self) {
        let is_inflight = |n: &u16| self.record.half(at(*n, INFLIGHT_AT)) & 0xff != 0;
        let counter = |n: u16| (self.record.word64(at(n, COUNTER_AT)), n);
        let mut heads: Vec<_> = (0..self.size).filter(is_inflight).map(counter).collect();
        heads.sort_unstable();
        self.counter = heads.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        self.again = heads.into_iter().map(|(_, head)| head).collect();
    }

    /// Returns the head of the unreturned chain that replaces the available entry `index`; `None` if that
    /// entry is read from the ring.
    pub(in crate::device) fn again(&self, index: u16) -> Option<u16> {
        self.again.get(usize::from(index.wrapping_sub(self.first))).copied()
    }

    /// Returns the index of the first available entry that is read from the ring.
    pub(in crate::device) fn end(&self) -> u16 {
        self.first.wrapping_add(self.again.len() as u16)
    }

    /// Records the chain with the head `head` as in flight and as the last chain of the batch. The caller must
    /// record the chains in their order in the ring.
    pub(in crate::device) fn record(&mut self, head: u16) {
        if self.again.pop_front().is_some() {
            self.first = self.first.wrapping_add(1);
        } else {
            self.record.set_word64(at(head, COUNTER_AT), self.counter);
            self.counter = self.counter.wrapping_add(1);
            self.record.set_half(at(head, INFLIGHT_AT), 1);
        }
        self.record.set_half(at(head, NEXT_AT), self.last_batch_head);
        self.last_batch_head = head;
        self.record.set_half(LAST_BATCH_HEAD_AT, head);
        self.batch.push(head);
    }

    /// Records that the batch was published: the used index in the ring is `used`.
    pub(in crate::device) fn publish(&mut self, used: u16) {
        for head in self.batch.drain(..) {
            self.record.set_half(at(head, INFLIGHT_AT), 0);
        }
        self.record.set_half(USED_INDEX_AT, used);
    }
}

/// Returns the offset of a field of the state of descriptor `n`, in bytes.
const fn at(n: u16, field: usize) -> usize {
    HEADER_BYTES + STATE_BYTES * n as usize + field
}
