//! The record of a packed ring: copies of the descriptors in flight, because a device overwrites descriptors
//! in the ring.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{InflightError, Record, SIZE_AT, VERSION, VERSION_AT};
use crate::config::Layout;
use crate::memory::Mapping;
use crate::ring::{AVAILABLE, Descriptor, Position, USED};

pub(super) const HEADER_BYTES: usize = 32;
pub(super) const STATE_BYTES: usize = 32;
const FREE_HEAD_AT: usize = 12;
const OLD_FREE_HEAD_AT: usize = 14;
/// The offset, in bytes, of four fields that one store writes together: the used index, the old used index,
/// and the wrap counter of each (one byte).
const USED_AT: usize = 16;
/// The offset of the first field in an entry's state, in bytes: one byte, which is 1 for a chain in flight,
/// then a byte of padding. The constants below give the other fields.
const INFLIGHT_AT: usize = 0;
const NEXT_AT: usize = 2;
const LAST_AT: usize = 4;
const COUNT_AT: usize = 6;
const COUNTER_AT: usize = 8;
const ID_AT: usize = 16;
const FLAGS_AT: usize = 18;
const BYTES_AT: usize = 20;
const ADDRESS_AT: usize = 24;

/// The chains in flight of a packed ring.
#[derive(Debug)]
pub(in crate::device) struct PackedInflight {
    record: Record,
    size: u16,
    /// The chains that the previous device did not return, in the order in which it took them.
    again: VecDeque<Again>,
    start: Position,
    counter: u64,
    /// The index of the first free entry; `size` if there is none.
    free: u16,
    /// For each entry, the index of the next entry in its list. This copy is private, because the other program
    /// may change the record.
    next: Vec<u16>,
    /// The chains returned since the last publication: for each its first and last entry.
    batch: Vec<(u16, u16)>,
    /// The position of the next used descriptor, as far as the driver can see the ring.
    published: Position,
    /// `true` if a driver made more descriptors available than the ring has, so that no more chains can be
    /// recorded.
    is_lost: bool,
}

/// A chain that the previous device did not return.
#[derive(Debug)]
struct Again {
    at: Position,
    /// The first and the last entry of the chain.
    entries: (u16, u16),
    descriptors: Vec<Descriptor>,
}

impl PackedInflight {
    /// Reads the record at `offset` in `mapping`, for a queue of `size` descriptors. An unused record is
    /// initialised with the position `used`. `flags_at` returns the flags of the descriptor at a position of
    /// the ring.
    pub(in crate::device) fn load(
        mapping: &Arc<Mapping>,
        offset: u64,
        size: u16,
        (used, flags_at): (Position, impl Fn(Position) -> u16),
    ) -> Result<Self, InflightError> {
        let record = Record::new(mapping, offset, (Layout::Packed, size))?;
        let mut this = Self {
            record,
            size,
            again: VecDeque::new(),
            start: used,
            counter: 0,
            free: 0,
            next: (1..=size).collect(),
            batch: Vec::with_capacity(usize::from(size)),
            published: used,
            is_lost: false,
        };
        if this.record.is_used(size)? {
            this.roll_back(flags_at)?;
            this.find_again()?;
        } else {
            for n in 0..size {
                this.record.set_half(at(n, INFLIGHT_AT), 0);
                this.record.set_half(at(n, NEXT_AT), n + 1);
            }
            this.record.set_half(SIZE_AT, size);
        }
        this.write_used(this.start, this.start);
        this.record.set_half(FREE_HEAD_AT, this.free);
        this.record.set_half(OLD_FREE_HEAD_AT, this.free);
        this.record.set_half(VERSION_AT, VERSION);
        Ok(this)
    }

    /// Restores the state of the previous device's last publication. If that device was killed during a
    /// publication, the flags in the ring decide if the publication counts.
    fn roll_back(&mut self, flags_at: impl Fn(Position) -> u16) -> Result<(), InflightError> {
        let [a, b, c, d, new_wrap, old_wrap, ..] = self.record.word64(USED_AT).to_ne_bytes();
        let position = |index, wrap| {
            let position = Position { index: u16::from_ne_bytes(index), wrap: wrap != 0 };
            if position.index < self.size { Ok(position) } else { Err(InflightError::Inconsistent) }
        };
        let (new, old) = (position([a, b], new_wrap)?, position([c, d], old_wrap)?);
        // The descriptor's flags show if the publication took place: if the descriptor is still available, it
        // did not.
        let is_available = flags_at(old) & (AVAILABLE | USED) == old.available_bits();
        let is_done = new != old && !is_available;
        self.start = if is_done { new } else { old };
        self.published = self.start;
        self.free = self.record.half(if is_done { FREE_HEAD_AT } else { OLD_FREE_HEAD_AT });
        Ok(())
    }

    /// Finds the chains in flight: entries that are marked and not free. Checks that every entry is in at most
    /// one list.
    fn find_again(&mut self) -> Result<(), InflightError> {
        let mut seen = vec![false; usize::from(self.size)];
        self.next = (0..self.size).map(|n| self.record.half(at(n, NEXT_AT))).collect();
        let mut free = self.free;
        while free < self.size {
            self.visit(free, &mut seen)?;
            self.record.set_half(at(free, INFLIGHT_AT), 0);
            free = self.next[usize::from(free)];
        }
        let is_inflight = |n: &u16| self.record.half(at(*n, INFLIGHT_AT)) & 0xff != 0;
        let counter = |n: u16| (self.record.word64(at(n, COUNTER_AT)), n);
        let mut heads: Vec<_> = (0..self.size).filter(is_inflight).map(counter).collect();
        heads.sort_unstable();
        self.counter = heads.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        let mut at_position = self.start;
        for (_, head) in heads {
            let again = self.chain(head, at_position, &mut seen)?;
            at_position = at_position.ahead(again.descriptors.len() as u16, self.size);
            self.again.push_back(again);
        }
        Ok(())
    }

    fn chain(
        &self,
        head: u16,
        at_position: Position,
        seen: &mut [bool],
    ) -> Result<Again, InflightError> {
        let (last, count) =
            (self.record.half(at(head, LAST_AT)), self.record.half(at(head, COUNT_AT)));
        let (mut entry, mut descriptors) = (head, Vec::new());
        for n in 1..=count {
            self.visit(entry, seen)?;
            descriptors.push(self.descriptor(entry));
            if n == count && entry == last {
                return Ok(Again { at: at_position, entries: (head, last), descriptors });
            }
            entry = self.next[usize::from(entry)];
        }
        Err(InflightError::Inconsistent)
    }

    fn visit(&self, entry: u16, seen: &mut [bool]) -> Result<(), InflightError> {
        match seen.get_mut(usize::from(entry)) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(InflightError::Inconsistent),
        }
        Ok(())
    }

    fn descriptor(&self, entry: u16) -> Descriptor {
        Descriptor {
            address: self.record.word64(at(entry, ADDRESS_AT)),
            bytes: self.record.word32(at(entry, BYTES_AT)),
            flags: self.record.half(at(entry, FLAGS_AT)),
            link: self.record.half(at(entry, ID_AT)),
        }
    }

    /// Returns the position in the ring at which the device begins. The recorded chains take the first
    /// positions from there.
    pub(in crate::device) const fn start(&self) -> Position {
        self.start
    }

    /// Returns the descriptors that the previous device did not return, each with its position in the ring,
    /// from the start position on.
    pub(in crate::device) fn again(&self) -> impl Iterator<Item = (Position, Descriptor)> {
        self.again.iter().flat_map(|again| {
            let at = |n: usize| again.at.ahead(n as u16, self.size);
            again.descriptors.iter().enumerate().map(move |(n, descriptor)| (at(n), *descriptor))
        })
    }

    /// Records the chain at `position`, which consists of `descriptors`, as in flight and as the last chain of
    /// the batch. The caller must record the chains in their order in the ring.
    pub(in crate::device) fn record(
        &mut self,
        position: Position,
        descriptors: impl Iterator<Item = Descriptor>,
    ) {
        if self.is_lost {
            return;
        }
        if self.again.front().is_some_and(|again| again.at == position)
            && let Some(again) = self.again.pop_front()
        {
            return self.batch.push(again.entries);
        }
        let (head, mut last, mut count) = (self.free, self.free, 0);
        for descriptor in descriptors {
            if self.free >= self.size {
                return self.reset();
            }
            if count == 0 {
                self.record.set_half(at(head, COUNT_AT), 0);
                self.record.set_word64(at(head, COUNTER_AT), self.counter);
                self.counter = self.counter.wrapping_add(1);
                self.record.set_half(at(head, INFLIGHT_AT), 1);
            }
            count += 1;
            last = self.free;
            self.write_descriptor(last, descriptor);
            self.record.set_half(at(head, LAST_AT), last);
            self.record.set_half(at(head, COUNT_AT), count);
            self.free = self.next[usize::from(last)];
            self.record.set_half(FREE_HEAD_AT, self.free);
        }
        self.record.set_half(OLD_FREE_HEAD_AT, self.free);
        self.batch.push((head, last));
    }

    fn write_descriptor(&self, entry: u16, descriptor: Descriptor) {
        let Descriptor { address, bytes, flags, link } = descriptor;
        self.record.set_word64(at(entry, ADDRESS_AT), address);
        self.record.set_word32(at(entry, BYTES_AT), bytes);
        self.record.set_half(at(entry, FLAGS_AT), flags);
        self.record.set_half(at(entry, ID_AT), link);
    }

    /// Records that the batch is about to be published, up to the used position `to`.
    pub(in crate::device) fn begin_publishing(&mut self, to: Position) {
        if self.is_lost {
            return;
        }
        for (head, last) in &self.batch {
            self.next[usize::from(*last)] = self.free;
            self.record.set_half(at(*last, NEXT_AT), self.free);
            self.free = *head;
        }
        self.record.set_half(FREE_HEAD_AT, self.free);
        self.write_used(to, self.published);
    }

    /// Records that the batch was published, up to the used position `to`.
    pub(in crate::device) fn end_publishing(&mut self, to: Position) {
        if self.is_lost {
            return;
        }
        for (head, _) in self.batch.drain(..) {
            self.record.set_half(at(head, INFLIGHT_AT), 0);
        }
        self.published = to;
        self.record.set_half(OLD_FREE_HEAD_AT, self.free);
        self.write_used(to, to);
    }

    fn write_used(&self, new: Position, old: Position) {
        let ([a, b], [c, d]) = (new.index.to_ne_bytes(), old.index.to_ne_bytes());
        let bytes = [a, b, c, d, u8::from(new.wrap), u8::from(old.wrap), 0, 0];
        self.record.set_word64(USED_AT, u64::from_ne_bytes(bytes));
    }

    /// Marks the record as unused, because it cannot describe the chains any more.
    #[cold]
    fn reset(&mut self) {
        self.is_lost = true;
        self.record.set_half(VERSION_AT, 0);
    }
}

/// Returns the offset of a field of the state of entry `n`, in bytes.
const fn at(n: u16, field: usize) -> usize {
    HEADER_BYTES + STATE_BYTES * n as usize + field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::NEXT;

    const SIZE: u16 = 8;

    fn descriptor(n: u16) -> Descriptor {
        Descriptor { address: u64::from(n), bytes: 1, flags: NEXT, link: n }
    }

    fn load(mapping: &Arc<Mapping>, used: Position, flags: u16) -> PackedInflight {
        PackedInflight::load(mapping, 0, SIZE, (used, |_| flags)).unwrap()
    }

    /// A device that is killed while it publishes leaves a record that says where it was going. The flags of the first
    /// descriptor tell whether it came there, also across the end of the ring.
    #[test]
    fn a_device_killed_while_it_publishes_has_published_or_not() {
        for index in 0..SIZE {
            for is_published in [false, true] {
                let mapping = Arc::new(Mapping::zeroed(4_096));
                let start = Position { index, wrap: true };
                let to = start.ahead(3, SIZE);
                let mut first = load(&mapping, start, start.available_bits());
                first.record(start, [descriptor(0), descriptor(1)].into_iter());
                first.record(start.ahead(2, SIZE), [descriptor(2)].into_iter());
                first.begin_publishing(to);
                let flags = if is_published { start.both_bits() } else { start.available_bits() };
                let next = load(&mapping, Position::START, flags);
                let lengths: Vec<_> =
                    next.again.iter().map(|again| again.descriptors.len()).collect();
                if is_published {
                    assert_eq!((next.start(), lengths.len()), (to, 0));
                } else {
                    assert_eq!((next.start(), &lengths[..]), (start, &[2, 1][..]));
                    let again: Vec<_> = next.again().map(|(at, it)| (at, it.address)).collect();
                    let expected = [0, 1, 2].map(|n| (start.ahead(n, SIZE), u64::from(n)));
                    assert_eq!(again, expected);
                }
                // All entries are there: those of the chains in flight, and the others.
                let mut next = next;
                let left = SIZE - lengths.iter().sum::<usize>() as u16;
                next.again.clear();
                next.record(to, (0..left).map(descriptor));
                assert!(!next.is_lost && next.free >= SIZE);
                next.record(to, [descriptor(0)].into_iter());
                assert!(next.is_lost, "more than the ring has");
            }
        }
    }
}
