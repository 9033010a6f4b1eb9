//! Flow table: maps a flow to the index of the aggregate that it holds.
//!
//! A sparse hash table whose chains are the held flows. Finding, adding and removing are O(1), however many flows
//! there are. The hash is seeded, so a sender without the seed cannot fill one bucket on purpose. Even if a
//! sender knows the seed, a bucket has at most [`MOST_IN_BUCKET`] flows, because the caller flushes the first
//! flow of a full bucket before it adds another. By chance, a bucket is full once in 10¹¹ flows. The order in
//! which flows were used follows from their frames ([`crate::links`]).

use alloc::boxed::Box;

use rxo_wire::{FlowHash, FlowKey};

use crate::held::BucketLink;
use crate::{Held, work};

const NO_FLOW: u16 = u16::MAX;
/// The minimum number of buckets: sparse enough that a bucket rarely holds two flows, small enough for the L1
/// cache.
const MIN_BUCKETS: usize = 2_048;
/// The maximum number of buckets: four for each of 4,096 flows. The array always has this length, so that an
/// index needs no bounds check. Unused buckets are never read or written.
const BUCKETS: usize = 16_384;
/// The maximum number of flows in a bucket.
const MOST_IN_BUCKET: usize = 8;

#[derive(Debug)]
pub(crate) struct Table {
    buckets: Box<[u16; BUCKETS]>,
    /// The number of buckets in use, minus one.
    mask: usize,
    len: u16,
    limit: u16,
}

impl Table {
    /// Creates a table for at most `limit` flows.
    pub(crate) fn new(limit: u16) -> Self {
        let used = (usize::from(limit) * 4).next_power_of_two().clamp(MIN_BUCKETS, BUCKETS);
        Self { buckets: Box::new([NO_FLOW; BUCKETS]), mask: used - 1, len: 0, limit }
    }

    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.len == self.limit
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the index of the first flow in the bucket of this hash, which is usually the flow with this hash.
    /// `None` if the bucket is empty.
    #[inline]
    pub(crate) fn guess(&self, hash: FlowHash) -> Option<u16> {
        let flow = self.buckets[self.bucket(hash)];
        (flow != NO_FLOW).then_some(flow)
    }

    /// Returns the index of the flow; `None` if the flow holds nothing.
    #[inline(always)]
    pub(crate) fn find(&self, held: &[Held], key: &FlowKey, hash: FlowHash) -> Option<u16> {
        let mut flow = self.buckets[self.bucket(hash)];
        while flow != NO_FLOW {
            work::done(1);
            let found = &held[usize::from(flow)];
            if found.key == *key {
                return Some(flow);
            }
            flow = found.link.next;
        }
        None
    }

    /// Returns the index of the flow that was added first to the bucket of this hash, if the bucket is full;
    /// otherwise `None`.
    pub(crate) fn first_of_full_bucket(&self, held: &[Held], hash: FlowHash) -> Option<u16> {
        let next =
            |flow: &u16| Some(held[usize::from(*flow)].link.next).filter(|next| *next != NO_FLOW);
        let flows = core::iter::successors(self.guess(hash), next).inspect(|_| work::done(1));
        flows.enumerate().last().filter(|(at, _)| at + 1 >= MOST_IN_BUCKET).map(|(_, first)| first)
    }

    /// Adds `flow`. Neither the table nor the flow's bucket may be full.
    #[inline]
    pub(crate) fn insert(&mut self, held: &mut Held, flow: u16, hash: FlowHash) {
        let bucket = self.bucket(hash);
        let next = core::mem::replace(&mut self.buckets[bucket], flow);
        held.link = BucketLink { bucket: bucket as u16, next };
        self.len += 1;
    }

    /// Empties the bucket that contains the flow `held`. Used when all flows are removed at once.
    #[inline]
    pub(crate) fn forget_bucket(&mut self, held: &Held) {
        self.buckets[usize::from(held.link.bucket) % BUCKETS] = NO_FLOW;
    }

    /// Records that all flows were removed; every bucket must be empty.
    #[inline]
    pub(crate) const fn forget_all(&mut self) {
        self.len = 0;
    }

    #[inline]
    pub(crate) fn remove(&mut self, held: &mut [Held], flow: u16) {
        let BucketLink { bucket, next } = held[usize::from(flow)].link;
        let head = &mut self.buckets[usize::from(bucket) % BUCKETS];
        if *head == flow {
            *head = next;
        } else {
            self.remove_from_middle(held, flow);
        }
        self.len -= 1;
    }

    #[cold]
    fn remove_from_middle(&self, held: &mut [Held], flow: u16) {
        let BucketLink { bucket, next } = held[usize::from(flow)].link;
        let mut before = self.buckets[usize::from(bucket) % BUCKETS];
        while before != NO_FLOW {
            work::done(1);
            let link = &mut held[usize::from(before)].link;
            if link.next == flow {
                link.next = next;
                return;
            }
            before = link.next;
        }
    }

    #[inline]
    const fn bucket(&self, hash: FlowHash) -> usize {
        // The second mask changes nothing, but saves the bounds check.
        hash.0 as usize & self.mask & (BUCKETS - 1)
    }
}
