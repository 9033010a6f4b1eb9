//! Which flow holds what.
//!
//! A sparse index of buckets over the places of the store. Finding, adding and removing are O(1); a
//! flow's cost does not depend on how many others there are. The hash is seeded, so nobody outside
//! can fill one bucket on purpose. In which order flows were used is known from their frames
//! ([`crate::links`]).

use alloc::boxed::Box;

use rxo_wire::{FlowHash, FlowKey};

use crate::Held;
use crate::held::BucketLink;

const NOBODY: u16 = u16::MAX;
/// Sparse enough that a bucket rarely holds two, small enough to stay in the first-level cache.
const MIN_BUCKETS: usize = 2_048;
/// The most that are ever used, four for each of the most flows. There are always so many: an index
/// that is known to be less needs no check, and what is not used is never touched.
const BUCKETS: usize = 16_384;

#[derive(Debug)]
pub(crate) struct Table {
    buckets: Box<[u16; BUCKETS]>,
    /// One less than the number of those in use.
    mask: usize,
    len: u16,
    limit: u16,
}

impl Table {
    /// A table for at most `limit` flows.
    pub(crate) fn new(limit: u16) -> Self {
        let used = (usize::from(limit) * 4).next_power_of_two().clamp(MIN_BUCKETS, BUCKETS);
        Self { buckets: Box::new([NOBODY; BUCKETS]), mask: used - 1, len: 0, limit }
    }

    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.len == self.limit
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many flows hold something.
    #[inline]
    pub(crate) const fn len(&self) -> u16 {
        self.len
    }

    /// Where a flow of this hash is held, most often the one that is meant.
    #[inline(always)]
    pub(crate) fn guess(&self, hash: FlowHash) -> Option<u16> {
        let place = self.buckets[self.bucket(hash)];
        (place != NOBODY).then_some(place)
    }

    /// Where the flow is held.
    #[inline(always)]
    pub(crate) fn find(&self, held: &[Held], key: &FlowKey, hash: FlowHash) -> Option<u16> {
        let mut place = self.buckets[self.bucket(hash)];
        while place != NOBODY {
            let found = &held[usize::from(place)];
            if found.key == *key {
                return Some(place);
            }
            place = found.link.next;
        }
        None
    }

    /// Adds `place`. The caller has made room.
    #[inline(always)]
    pub(crate) fn insert(&mut self, held: &mut Held, place: u16, hash: FlowHash) {
        let bucket = self.bucket(hash);
        let next = core::mem::replace(&mut self.buckets[bucket], place);
        held.link = BucketLink { bucket: bucket as u16, next };
        self.len += 1;
    }

    /// Empties the bucket of `held`; for when all are removed at once.
    #[inline(always)]
    pub(crate) fn forget_bucket(&mut self, held: &Held) {
        self.buckets[usize::from(held.link.bucket) % BUCKETS] = NOBODY;
    }

    /// Nothing is held any more, and every bucket is empty.
    #[inline]
    pub(crate) const fn forget_all(&mut self) {
        self.len = 0;
    }

    #[inline]
    pub(crate) fn remove(&mut self, held: &mut [Held], place: u16) {
        let BucketLink { bucket, next } = held[usize::from(place)].link;
        let head = &mut self.buckets[usize::from(bucket) % BUCKETS];
        if *head == place {
            *head = next;
        } else {
            self.remove_from_middle(held, place);
        }
        self.len -= 1;
    }

    #[cold]
    fn remove_from_middle(&self, held: &mut [Held], place: u16) {
        let BucketLink { bucket, next } = held[usize::from(place)].link;
        let mut before = self.buckets[usize::from(bucket) % BUCKETS];
        while before != NOBODY {
            let link = &mut held[usize::from(before)].link;
            if link.next == place {
                link.next = next;
                return;
            }
            before = link.next;
        }
    }

    #[inline]
    const fn bucket(&self, hash: FlowHash) -> usize {
        hash.0 as usize & self.mask & (BUCKETS - 1)
    }
}
