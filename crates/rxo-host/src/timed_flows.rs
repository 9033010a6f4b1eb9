//! The connections in TIME-WAIT, as a compact table.
//!
//! Separate from the cells because a server that closes first has thousands of them. An entry takes 80 bytes
//! and four in the index, and does not count as a connection. All memory is allocated at construction.
//! Entries are in order of insertion, which is nearly the order in which they expire. A full table evicts the
//! oldest entry, whose pair of sockets may then be reused early.

use rxo_frame::{Duration, Instant};
use rxo_tcp::TimeWait;
use rxo_wire::{FlowHasher, FlowKey};

/// A ring of entries, with a hash table of their flows.
#[derive(Debug)]
pub(super) struct TimeWaits {
    hasher: FlowHasher,
    /// The ring: `used` entries beginning with `first`, including removed ones.
    ring: Vec<Entry>,
    limit: usize,
    first: usize,
    used: usize,
    live: usize,
    /// The first entry of each hash chain, as its index plus one; 0 for an empty chain.
    buckets: Vec<u32>,
}

/// A connection in TIME-WAIT.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The flow key of received segments; [`FlowKey::NOBODY`] if the entry was removed.
    key: FlowKey,
    until: Instant,
    left: TimeWait,
    /// The next entry in the hash chain, encoded as in `buckets`.
    next: u32,
}

impl TimeWaits {
    /// Creates a table of `limit` entries; at least one.
    pub(super) fn new(limit: usize, seed: u64) -> Self {
        let (limit, hasher) = (limit.max(1), FlowHasher::new(seed));
        let (ring, buckets) = (Vec::with_capacity(limit), vec![0; limit.next_power_of_two()]);
        Self { hasher, ring, limit, first: 0, used: 0, live: 0, buckets }
    }

    /// Number of connections in TIME-WAIT.
    pub(super) const fn len(&self) -> usize {
        self.live
    }

    /// The deadline at which to call [`TimeWaits::take_due`]; `None` if the table is empty. A second after
    /// the first entry expires, so that many are removed together.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let oldest = self.ring.get(self.first).filter(|_| self.used > 0)?;
        Some(oldest.until + TOGETHER)
    }

    /// The connection whose segments arrive with the flow key `key`.
    #[inline]
    pub(super) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut TimeWait> {
        let place = self.find(key)?;
        Some(&mut self.ring[place].left)
    }

    /// Adds an entry with a new key. A full table evicts the oldest entry and returns its key.
    pub(super) fn insert(
        &mut self,
        key: FlowKey,
        left: TimeWait,
        until: Instant,
    ) -> Option<FlowKey> {
        let given_up = if self.used == self.limit { self.take_first() } else { None };
        let (place, bucket) = ((self.first + self.used) % self.limit, self.bucket(&key));
        let entry = Entry { key, until, left, next: self.buckets[bucket] };
        match self.ring.get_mut(place) {
            Some(free) => *free = entry,
            // The ring has not wrapped yet.
            None => self.ring.push(entry),
        }
        self.buckets[bucket] = place as u32 + 1;
        self.used += 1;
        self.live += 1;
        given_up
    }

    /// Restarts the timer of `key`, at most once a second: a restart takes another entry of the ring, and
    /// retransmitted FINs must not evict other entries. Returns the key of an evicted entry.
    pub(super) fn restart(&mut self, key: &FlowKey, until: Instant) -> Option<FlowKey> {
        let place = self.find(key)?;
        let Entry { left, until: before, .. } = self.ring[place];
        if until < before + TOGETHER {
            return None;
        }
        self.unlink(place);
        self.insert(*key, left, until)
    }

    /// Removes the entry of `key`.
    pub(super) fn remove(&mut self, key: &FlowKey) {
        if let Some(place) = self.find(key) {
            self.unlink(place);
        }
    }

    /// Removes one entry that has expired at `now`, and returns its key; `None` if there is none.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<FlowKey> {
        while self.used > 0 && self.ring[self.first].until <= now {
            if let Some(key) = self.take_first() {
                return Some(key);
            }
        }
        None
    }

    /// Removes the oldest entry from the ring and returns its key; `None` if it was removed before.
    fn take_first(&mut self) -> Option<FlowKey> {
        let (place, key) = (self.first, self.ring[self.first].key);
        (self.first, self.used) = ((self.first + 1) % self.limit, self.used - 1);
        let is_live = key != FlowKey::NOBODY;
        if is_live {
            self.unlink(place);
        }
        is_live.then_some(key)
    }

    fn find(&self, key: &FlowKey) -> Option<usize> {
        if self.live == 0 {
            return None;
        }
        self.chain(self.bucket(key)).find(|place| self.ring[*place].key == *key)
    }

    fn chain(&self, bucket: usize) -> impl Iterator<Item = usize> {
        let mut next = self.buckets[bucket];
        std::iter::from_fn(move || {
            let place = next.checked_sub(1)? as usize;
            next = self.ring[place].next;
            Some(place)
        })
    }

    /// Unlinks the entry at index `place` from its hash chain and marks it as removed.
    fn unlink(&mut self, place: usize) {
        let Entry { key, next, .. } = self.ring[place];
        let (bucket, own) = (self.bucket(&key), place as u32 + 1);
        let before = self.chain(bucket).find(|before| self.ring[*before].next == own);
        match before {
            Some(before) => self.ring[before].next = next,
            None => self.buckets[bucket] = next,
        }
        self.ring[place].key = FlowKey::NOBODY;
        self.live -= 1;
    }

    fn bucket(&self, key: &FlowKey) -> usize {
        self.hasher.hash(key).0 as usize & (self.buckets.len() - 1)
    }
}

const TOGETHER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
