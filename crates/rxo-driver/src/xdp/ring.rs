//! Ring: one of the four queues between this process and the kernel. One side writes, the other reads.
//!
//! This module is separate because it contains only index arithmetic, which works on any memory. Contract: an
//! entry is visible to the other side only after `publish`, and its slot may be written again only after
//! `release`. Indices increment forever and wrap at 2³²; a ring of `n` entries (a power of two) uses their
//! lower bits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::memory::Mapping;

/// The offsets of a ring's parts in its memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
}

/// An entry of a ring: the address of a frame; in a ring of descriptors also a second word with the frame's
/// length and options.
pub(super) type Entry<const WORDS: usize> = [u64; WORDS];

/// A ring whose entries have `WORDS` words of eight bytes.
#[derive(Clone, Debug)]
pub(super) struct Ring<const WORDS: usize> {
    memory: Arc<Mapping>,
    places: Places,
    count: u32,
}

impl<const WORDS: usize> Ring<WORDS> {
    /// Creates a ring of `count` entries, a power of two, in `memory`.
    pub(super) fn new(memory: Arc<Mapping>, places: Places, count: u32) -> Self {
        assert!(count.is_power_of_two(), "a ring of {count} entries");
        Self { memory, places, count }
    }

    #[inline]
    fn place(&self, index: u32, word: usize) -> usize {
        self.places.entries + ((index & (self.count - 1)) as usize * WORDS + word) * 8
    }

    #[inline]
    fn read(&self, index: u32) -> Entry<WORDS> {
        std::array::from_fn(|word| {
            self.memory.wide(self.place(index, word)).load(Ordering::Relaxed)
        })
    }

    #[inline]
    fn write(&self, index: u32, entry: Entry<WORDS>) {
        for (word, value) in entry.into_iter().enumerate() {
            self.memory.wide(self.place(index, word)).store(value, Ordering::Relaxed);
        }
    }

    /// Returns `true` if the kernel must be woken by a system call to continue.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.memory.word(self.places.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP
            != 0
    }
}

/// The writing side of a ring.
#[derive(Debug)]
pub(super) struct Producer<const WORDS: usize> {
    ring: Ring<WORDS>,
    next: u32,
    /// The index before which all slots are known to be free, so that they can be written.
    free_until: u32,
}

impl<const WORDS: usize> Producer<WORDS> {
    pub(super) fn new(ring: Ring<WORDS>) -> Self {
        let next = ring.memory.word(ring.places.producer).load(Ordering::Relaxed);
        Self { ring, next, free_until: next }
    }

    pub(super) fn ring(&self) -> &Ring<WORDS> {
        &self.ring
    }

    /// Returns `true` if there are `wanted` free slots.
    #[inline]
    pub(super) fn has_room(&mut self, wanted: u32) -> bool {
        if self.free_until.wrapping_sub(self.next) < wanted {
            self.free_until = self.taken().wrapping_add(self.ring.count);
        }
        self.free_until.wrapping_sub(self.next) >= wanted
    }

    /// Writes an entry. Returns `false` if there is no free slot.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry<WORDS>) -> bool {
        if !self.has_room(1) {
            return false;
        }
        self.ring.write(self.next, entry);
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Makes all pushed entries visible to the other side.
    #[inline]
    pub(super) fn publish(&self) {
        let word = self.ring.memory.word(self.ring.places.producer);
        word.store(self.next, Ordering::Release);
    }

    /// Returns the number of entries that the other side has not read.
    pub(super) fn unread(&self) -> u32 {
        self.next.wrapping_sub(self.taken())
    }

    fn taken(&self) -> u32 {
        self.ring.memory.word(self.ring.places.consumer).load(Ordering::Acquire)
    }
}

/// The reading side of a ring.
#[derive(Debug)]
pub(super) struct Consumer<const WORDS: usize> {
    ring: Ring<WORDS>,
    next: u32,
    /// The index before which all entries are known to be written, so that they can be read.
    filled_until: u32,
}

impl<const WORDS: usize> Consumer<WORDS> {
    pub(super) fn new(ring: Ring<WORDS>) -> Self {
        let next = ring.memory.word(ring.places.consumer).load(Ordering::Relaxed);
        Self { ring, next, filled_until: next }
    }

    /// Returns the entry that is `ahead` entries after the next one; `None` if the other side has not written
    /// it.
    #[inline]
    pub(super) fn peek(&mut self, ahead: u32) -> Option<Entry<WORDS>> {
        if self.filled_until.wrapping_sub(self.next) <= ahead {
            let word = self.ring.memory.word(self.ring.places.producer);
            self.filled_until = word.load(Ordering::Acquire);
        }
        let filled = self.filled_until.wrapping_sub(self.next);
        (filled > ahead).then(|| self.ring.read(self.next.wrapping_add(ahead)))
    }

    /// Returns the entry that is `ahead` entries after the next one, if it is known to be written; does not
    /// read the shared index.
    #[inline]
    pub(super) fn known(&self, ahead: u32) -> Option<Entry<WORDS>> {
        let filled = self.filled_until.wrapping_sub(self.next);
        (filled > ahead).then(|| self.ring.read(self.next.wrapping_add(ahead)))
    }

    /// Takes the next entry from the ring; `None` if the ring is empty.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Entry<WORDS>> {
        let entry = self.peek(0)?;
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Returns the slots of all taken entries to the other side.
    #[inline]
    pub(super) fn release(&self) {
        let word = self.ring.memory.word(self.ring.places.consumer);
        word.store(self.next, Ordering::Release);
    }
}

/// Test functions: rings in separate memory.
#[cfg(test)]
impl<const WORDS: usize> Ring<WORDS> {
    /// Creates an empty ring whose two indices begin at `first`.
    pub(super) fn fresh(count: u32, first: u32) -> Self {
        let places = Places { producer: 0, consumer: 64, flags: 128, entries: 192 };
        let memory = Mapping::fresh(192 + count as usize * WORDS * 8).unwrap();
        memory.word(places.producer).store(first, Ordering::Relaxed);
        memory.word(places.consumer).store(first, Ordering::Relaxed);
        Self::new(Arc::new(memory), places, count)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_ring_takes_no_more_until_entries_are_released() {
        let ring = Ring::<1>::fresh(4, u32::MAX - 1);
        let (mut producer, mut consumer) = (Producer::new(ring.clone()), Consumer::new(ring));
        assert_eq!((0..9).filter(|n| producer.push([*n])).count(), 4);
        assert_eq!(consumer.pop(), None, "nothing is published");
        producer.publish();
        assert_eq!(
            (consumer.pop(), consumer.peek(2), consumer.peek(3)),
            (Some([0]), Some([3]), None)
        );
        assert!(!producer.push([9]), "taken, but not released");
        consumer.release();
        assert!(producer.has_room(1) && !producer.has_room(2) && producer.push([9]));
        assert_eq!(producer.unread(), 4);
    }

    proptest! {
        /// A ring gives what was pushed, in order, and never more than it has places, wherever its indices wrap.
        #[test]
        fn entries_come_in_order(first in any::<u32>(), steps in prop::collection::vec((0..4_u8, 1..5_u64), 0..200)) {
            let ring = Ring::<2>::fresh(8, first);
            let (mut producer, mut consumer) = (Producer::new(ring.clone()), Consumer::new(ring));
            let (mut there, mut unreleased, mut number) = (VecDeque::new(), 0_usize, 0);
            for (step, times) in steps {
                for _ in 0..times {
                    match step {
                        0 => {
                            number += 1;
                            let fits = there.len() + unreleased < 8;
                            prop_assert_eq!(producer.push([number, !number]), fits);
                            if fits {
                                there.push_back(number);
                            }
                        }
                        1 => producer.publish(),
                        2 => {
                            producer.publish();
                            let expected = there.pop_front();
                            unreleased += usize::from(expected.is_some());
                            prop_assert_eq!(consumer.pop(), expected.map(|it| [it, !it]));
                        }
                        _ => {
                            consumer.release();
                            unreleased = 0;
                        }
                    }
                }
            }
        }
    }
}
