//! Flows that expire: connections in TIME-WAIT, and half-open connections.
//!
//! These flows are not kept in cells, because a server that closes first has thousands of connections in
//! TIME-WAIT. An entry takes 80 bytes, four bytes in the index, and no socket. All memory is allocated at
//! construction. Entries are in the order of insertion, which is nearly the order in which they expire. A full
//! table evicts the oldest entry. If that entry is a connection in TIME-WAIT, its pair of sockets may be reused
//! early.

use rxo_frame::{Duration, Instant};
use rxo_wire::{FlowHasher, FlowKey};

/// A table of flows that expire: a ring of entries, with a hash table of their keys.
#[derive(Debug)]
pub(crate) struct TimedFlows<T> {
    hasher: FlowHasher,
    /// The ring: `used` entries, starting at `first`, including removed entries.
    ring: Vec<Entry<T>>,
    limit: usize,
    first: usize,
    used: usize,
    live: usize,
    /// The first entry of each hash chain, as its index in the ring plus one; 0 for an empty chain.
    buckets: Vec<u32>,
}

/// An entry of the table: one flow, with its state and its expiry time.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    /// The flow key of arriving segments; [`FlowKey::NONE`] if the entry was removed.
    key: FlowKey,
    until: Instant,
    left: T,
    /// The index of the next entry in the hash chain plus one; 0 at the end of the chain.
    next: u32,
}

impl<T: Copy> TimedFlows<T> {
    /// Creates a table of `limit` entries, at least 1.
    pub(crate) fn new(limit: usize, seed: u64) -> Self {
        let (limit, hasher) = (limit.max(1), FlowHasher::new(seed));
        let (ring, buckets) = (Vec::with_capacity(limit), vec![0; limit.next_power_of_two()]);
        Self { hasher, ring, limit, first: 0, used: 0, live: 0, buckets }
    }

    /// Returns the number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.live
    }

    /// Returns the time at which [`TimedFlows::take_due`] must be called, or `None` if the table is empty. The
    /// time is one second after the oldest entry expires, so that a call removes many expired entries.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let oldest = self.ring.get(self.first).filter(|_| self.used > 0)?;
        Some(oldest.until + TOGETHER)
    }

    /// Returns the state that is kept for the flow whose segments arrive as `key`; `None` if there is none.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut T> {
        let place = self.find(key)?;
        Some(&mut self.ring[place].left)
    }

    /// Adds an entry with a new key. If the table is full, evicts the oldest entry and returns its key;
    /// otherwise returns `None`. [`FlowKey::NONE`] is not stored, because it marks removed entries: no
    /// connection has this key, but a forged packet may.
    pub(crate) fn insert(&mut self, key: FlowKey, left: T, until: Instant) -> Option<FlowKey> {
        if key == FlowKey::NONE {
            return None;
        }
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

    /// Restarts the time of the flow `key`, at most once per second. The limit is needed because a restart uses
    /// a new entry of the ring, and repeated FINs must not evict other flows. Returns the key of an evicted
    /// entry; `None` if none was evicted.
    pub(crate) fn restart(&mut self, key: &FlowKey, until: Instant) -> Option<FlowKey> {
        let place = self.find(key)?;
        let Entry { left, until: before, .. } = self.ring[place];
        if until < before + TOGETHER {
            return None;
        }
        self.unlink(place);
        self.insert(*key, left, until)
    }

    /// Removes the entry of `key`. Returns `true` if there was one.
    pub(crate) fn remove(&mut self, key: &FlowKey) -> bool {
        self.find(key).map(|place| self.unlink(place)).is_some()
    }

    /// Removes an entry that has expired at `now`, and returns its key; `None` if there is none.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<FlowKey> {
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
        let is_live = key != FlowKey::NONE;
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
        self.ring[place].key = FlowKey::NONE;
        self.live -= 1;
    }

    fn bucket(&self, key: &FlowKey) -> usize {
        self.hasher.hash(key).0 as usize & (self.buckets.len() - 1)
    }
}

const TOGETHER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
