//! Which flow holds what.
//!
//! A sparse index of buckets over the places of the store, and a list of these in order of use.
//! Finding, adding, touching and removing are O(1); a flow's cost does not depend on how many
//! others there are. The hash is seeded, so nobody outside can fill one bucket on purpose.

use alloc::boxed::Box;

use rxo_wire::{FlowHash, FlowKey};

use crate::Held;
use crate::held::Links;

const NOBODY: u16 = u16::MAX;
/// Sparse enough that a bucket rarely holds two, small enough to stay in the first-level cache.
const MIN_BUCKETS: usize = 2_048;

#[derive(Debug)]
pub(crate) struct Table {
    buckets: Box<[u16]>,
    mask: u32,
    oldest: u16,
    newest: u16,
    len: u16,
    limit: u16,
}

impl Table {
    /// A table for at most `limit` flows.
    pub(crate) fn new(limit: u16) -> Self {
        let buckets = (usize::from(limit) * 4).next_power_of_two().max(MIN_BUCKETS);
        Self {
            buckets: core::iter::repeat_n(NOBODY, buckets).collect(),
            mask: buckets as u32 - 1,
            oldest: NOBODY,
            newest: NOBODY,
            len: 0,
            limit,
        }
    }

    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.len == self.limit
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The least recently used flow's place.
    #[inline]
    pub(crate) const fn oldest(&self) -> Option<u16> {
        if self.oldest == NOBODY { None } else { Some(self.oldest) }
    }

    /// Where the flow is held.
    #[inline]
    pub(crate) fn find(&self, held: &[Held], key: &FlowKey, hash: FlowHash) -> Option<u16> {
        let mut place = self.buckets[self.bucket(hash)];
        while place != NOBODY {
            let found = &held[usize::from(place)];
            if found.key == *key {
                return Some(place);
            }
            place = found.links.next_in_bucket;
        }
        None
    }

    /// Adds `place` as the most recently used. The caller has made room.
    #[inline(always)]
    pub(crate) fn insert(&mut self, held: &mut [Held], place: u16, hash: FlowHash) {
        let bucket = self.bucket(hash);
        let links = Links {
            bucket: bucket as u16,
            next_in_bucket: self.buckets[bucket],
            older: self.newest,
            newer: NOBODY,
        };
        held[usize::from(place)].links = links;
        self.buckets[bucket] = place;
        self.link_newest(held, place);
        self.len += 1;
    }

    /// Empties the bucket of `place`; for when all are removed at once.
    #[inline(always)]
    pub(crate) fn forget_bucket(&mut self, held: &[Held], place: u16) {
        self.buckets[usize::from(held[usize::from(place)].links.bucket)] = NOBODY;
    }

    /// Forgets the order of all, whose buckets are empty.
    pub(crate) const fn forget_order(&mut self) {
        self.oldest = NOBODY;
        self.newest = NOBODY;
        self.len = 0;
    }

    /// Makes `place` the most recently used.
    #[inline]
    pub(crate) fn touch(&mut self, held: &mut [Held], place: u16) {
        if self.newest != place {
            self.unlink(held, place);
            held[usize::from(place)].links.older = self.newest;
            held[usize::from(place)].links.newer = NOBODY;
            self.link_newest(held, place);
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, held: &mut [Held], place: u16) {
        self.unlink(held, place);
        let Links { bucket, next_in_bucket, .. } = held[usize::from(place)].links;
        if self.buckets[usize::from(bucket)] == place {
            self.buckets[usize::from(bucket)] = next_in_bucket;
        } else {
            self.remove_from_middle(held, place);
        }
        self.len -= 1;
    }

    #[cold]
    fn remove_from_middle(&self, held: &mut [Held], place: u16) {
        let Links { bucket, next_in_bucket, .. } = held[usize::from(place)].links;
        let mut before = self.buckets[usize::from(bucket)];
        while before != NOBODY {
            let links = &mut held[usize::from(before)].links;
            if links.next_in_bucket == place {
                links.next_in_bucket = next_in_bucket;
                return;
            }
            before = links.next_in_bucket;
        }
    }

    /// The place used next after `place`.
    #[inline]
    pub(crate) fn newer_than(held: &[Held], place: u16) -> Option<u16> {
        let newer = held[usize::from(place)].links.newer;
        (newer != NOBODY).then_some(newer)
    }

    #[inline]
    const fn bucket(&self, hash: FlowHash) -> usize {
        (hash.0 as u32 & self.mask) as usize
    }

    #[inline]
    fn link_newest(&mut self, held: &mut [Held], place: u16) {
        match self.newest {
            NOBODY => self.oldest = place,
            newest => held[usize::from(newest)].links.newer = place,
        }
        self.newest = place;
    }

    #[inline]
    fn unlink(&mut self, held: &mut [Held], place: u16) {
        let Links { older, newer, .. } = held[usize::from(place)].links;
        match older {
            NOBODY => self.oldest = newer,
            older => held[usize::from(older)].links.newer = newer,
        }
        match newer {
            NOBODY => self.newest = older,
            newer => held[usize::from(newer)].links.older = older,
        }
    }
}
