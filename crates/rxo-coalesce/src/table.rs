//! Flow table: maps a flow to the place of the aggregate that it holds.
//!
//! A sparse index of buckets over the places of the store. Finding, adding and removing are O(1), however many
//! flows there are. The hash is seeded, so no sender can fill one bucket on purpose; and should one know the seed, a
//! bucket has at most [`MOST_IN_BUCKET`] flows, because the caller flushes its first before it adds one more. By chance
//! that happens once in 10¹¹ flows. The order in which flows were used follows from their frames ([`crate::links`]).

use alloc::boxed::Box;

use rxo_wire::{FlowHash, FlowKey};

use crate::held::BucketLink;
use crate::{Held, work};

const NOBODY: u16 = u16::MAX;
/// Sparse enough that a bucket rarely holds two, small enough to stay in the first-level cache.
const MIN_BUCKETS: usize = 2_048;
/// The most buckets ever used: four for each of the most flows. The array always has so many, so that an index
/// needs no check of bounds. Unused buckets are never touched.
const BUCKETS: usize = 16_384;
/// The most flows in a bucket.
const MOST_IN_BUCKET: usize = 8;

#[derive(Debug)]
pub(crate) struct Table {
    buckets: Box<[u16; BUCKETS]>,
    /// The number of buckets in use, less one.
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

    /// The place of a flow with this hash, which is most often the flow wanted.
    #[inline(always)]
    pub(crate) fn guess(&self, hash: FlowHash) -> Option<u16> {
        let place = self.buckets[self.bucket(hash)];
        (place != NOBODY).then_some(place)
    }

    /// The place of the flow.
    #[inline(always)]
    pub(crate) fn find(&self, held: &[Held], key: &FlowKey, hash: FlowHash) -> Option<u16> {
        let mut place = self.buckets[self.bucket(hash)];
        while place != NOBODY {
            work::done(1);
            let found = &held[usize::from(place)];
            if found.key == *key {
                return Some(place);
            }
            place = found.link.next;
        }
        None
    }

    /// The place of the flow that was added first to the bucket of this hash, if the bucket is full.
    pub(crate) fn first_of_full_bucket(&self, held: &[Held], hash: FlowHash) -> Option<u16> {
        let next =
            |place: &u16| Some(held[usize::from(*place)].link.next).filter(|next| *next != NOBODY);
        let places = core::iter::successors(self.guess(hash), next).inspect(|_| work::done(1));
        places.enumerate().last().filter(|(at, _)| at + 1 >= MOST_IN_BUCKET).map(|(_, first)| first)
    }

    /// Adds `place`. The caller has made room.
    #[inline(always)]
    pub(crate) fn insert(&mut self, held: &mut Held, place: u16, hash: FlowHash) {
        let bucket = self.bucket(hash);
        let next = core::mem::replace(&mut self.buckets[bucket], place);
        held.link = BucketLink { bucket: bucket as u16, next };
        self.len += 1;
    }

    /// Empties the bucket of `held`. For the removal of all flows at once.
    #[inline(always)]
    pub(crate) fn forget_bucket(&mut self, held: &Held) {
        self.buckets[usize::from(held.link.bucket) % BUCKETS] = NOBODY;
    }

    /// Records that all flows were removed and every bucket is empty.
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
            work::done(1);
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
