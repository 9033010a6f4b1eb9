//! Flow table: maps a flow key to its flow. The size of the table is bounded: a full table evicts the least
//! recently used flow.
//!
//! The table is a sparse hash table whose entries are chained by index. A list keeps the entries in order of
//! use. Finding, adding and evicting are O(1). The hash is seeded, so an attacker cannot choose flows that
//! share a bucket.

use alloc::boxed::Box;
use alloc::vec::Vec;

use rxo_wire::{FlowHasher, FlowKey};

use super::flow::Flow;

const NO_ENTRY: u16 = u16::MAX;
/// The maximum number of flows in a table.
pub(super) const MAX_FLOWS: u16 = 16_384;
/// The number of hash buckets per flow.
const SPARSITY: usize = 4;

#[derive(Debug)]
pub(super) struct Table {
    buckets: Box<[u16]>,
    entries: Vec<Entry>,
    limit: u16,
    hasher: FlowHasher,
    newest: u16,
    oldest: u16,
    pub(super) evicted: u64,
}

#[derive(Debug)]
struct Entry {
    key: FlowKey,
    bucket: u16,
    next: u16,
    newer: u16,
    older: u16,
    flow: Flow,
}

impl Table {
    /// Creates a table for at most `limit` flows, 1 to [`MAX_FLOWS`].
    pub(super) fn new(limit: u16, seed: u64) -> Self {
        let limit = limit.clamp(1, MAX_FLOWS);
        // At most 2^16 buckets, so that a bucket index fits into 16 bits.
        let buckets = (usize::from(limit) * SPARSITY).next_power_of_two();
        Self {
            buckets: core::iter::repeat_n(NO_ENTRY, buckets).collect(),
            entries: Vec::with_capacity(limit.into()),
            limit,
            hasher: FlowHasher::new(seed),
            newest: NO_ENTRY,
            oldest: NO_ENTRY,
            evicted: 0,
        }
    }

    /// Returns the flow of `key` and marks it as most recently used; `None` if the table does not contain
    /// this flow.
    #[inline]
    pub(super) fn find(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        let place = self.place_of(key, self.bucket_of(key))?;
        self.use_now(place);
        Some(&mut self.entries[usize::from(place)].flow)
    }

    /// Returns the flow of `key`, or adds an empty one. A full table first evicts the least recently used
    /// flow.
    #[inline]
    pub(super) fn find_or_add(&mut self, key: &FlowKey) -> &mut Flow {
        let bucket = self.bucket_of(key);
        let place = match self.place_of(key, bucket) {
            Some(place) => {
                self.use_now(place);
                place
            }
            None => self.add(key, bucket),
        };
        &mut self.entries[usize::from(place)].flow
    }

    #[inline]
    fn place_of(&self, key: &FlowKey, bucket: u16) -> Option<u16> {
        let mut place = self.buckets[usize::from(bucket)];
        while place != NO_ENTRY {
            let entry = &self.entries[usize::from(place)];
            if entry.key == *key {
                return Some(place);
            }
            place = entry.next;
        }
        None
    }

    #[inline]
    fn bucket_of(&self, key: &FlowKey) -> u16 {
        (self.hasher.hash(key).0 as usize & (self.buckets.len() - 1)) as u16
    }

    fn add(&mut self, key: &FlowKey, bucket: u16) -> u16 {
        let next = self.buckets[usize::from(bucket)];
        let entry = Entry {
            key: *key,
            bucket,
            next,
            newer: NO_ENTRY,
            older: NO_ENTRY,
            flow: Flow::default(),
        };
        let place = if self.entries.len() < usize::from(self.limit) {
            self.entries.push(entry);
            (self.entries.len() - 1) as u16
        } else {
            let place = self.evict();
            // The evicted flow may have been the first one in this bucket.
            let next = self.buckets[usize::from(bucket)];
            self.entries[usize::from(place)] = Entry { next, ..entry };
            place
        };
        self.buckets[usize::from(bucket)] = place;
        self.link_newest(place);
        place
    }

    #[cold]
    fn evict(&mut self) -> u16 {
        let place = self.oldest;
        self.evicted += 1;
        self.unlink(place);
        let Entry { bucket, next, .. } = self.entries[usize::from(place)];
        let mut at = self.buckets[usize::from(bucket)];
        if at == place {
            self.buckets[usize::from(bucket)] = next;
            return place;
        }
        while at != NO_ENTRY {
            let entry = &mut self.entries[usize::from(at)];
            if entry.next == place {
                entry.next = next;
                break;
            }
            at = entry.next;
        }
        place
    }

    #[inline]
    fn use_now(&mut self, place: u16) {
        if self.newest != place {
            self.unlink(place);
            self.link_newest(place);
        }
    }

    fn unlink(&mut self, place: u16) {
        let Entry { newer, older, .. } = self.entries[usize::from(place)];
        match newer {
            NO_ENTRY => self.newest = older,
            newer => self.entries[usize::from(newer)].older = older,
        }
        match older {
            NO_ENTRY => self.oldest = newer,
            older => self.entries[usize::from(older)].newer = newer,
        }
    }

    fn link_newest(&mut self, place: u16) {
        let before = core::mem::replace(&mut self.newest, place);
        let entry = &mut self.entries[usize::from(place)];
        (entry.newer, entry.older) = (NO_ENTRY, before);
        match before {
            NO_ENTRY => self.oldest = place,
            before => self.entries[usize::from(before)].newer = place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> FlowKey {
        FlowKey::v4(1, 2, number, 0)
    }

    #[test]
    fn the_least_recently_used_goes() {
        let mut table = Table::new(3, 1);
        (0..3).for_each(|number| {
            table.find_or_add(&key(number));
        });
        assert!(table.find(&key(0)).is_some());
        table.find_or_add(&key(3));
        assert!(table.find(&key(1)).is_none());
        assert!([0, 2, 3].into_iter().all(|number| table.find(&key(number)).is_some()));
        assert_eq!(table.evicted, 1);
    }

    /// Compares the table with a list in order of use. The table is so full that flows share buckets.
    #[test]
    fn many_flows_come_and_go_as_in_a_list() {
        extern crate std;
        let mut table = Table::new(16, 7);
        let mut list = std::collections::VecDeque::new();
        let mut state = 1_u32;
        for _ in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = (state >> 24) % 40;
            let is_there = list.iter().position(|known| *known == number);
            assert_eq!(table.find(&key(number)).is_some(), is_there.is_some());
            if let Some(at) = is_there {
                list.remove(at);
            } else if list.len() == 16 {
                list.pop_back();
            }
            list.push_front(number);
            table.find_or_add(&key(number));
        }
        assert!(table.evicted > 1_000);
    }
}
