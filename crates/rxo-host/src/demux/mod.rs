//! Demultiplexing: maps the flow key of a delivery to its connection.
//!
//! A delivery costs one keyed hash, or no hash if the previous delivery belongs to the same flow.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use rxo_wire::{FlowHasher, FlowKey};

/// A table from flow keys to the indices of connections, with a cache of the last flow found.
#[derive(Debug)]
pub(crate) struct Demux {
    hasher: FlowHasher,
    places: HashMap<Hashed, u32, BuildHasherDefault<AsItIs>>,
    last: Option<(FlowKey, u32)>,
}

impl Demux {
    pub(crate) fn new(seed: u64) -> Self {
        Self { hasher: FlowHasher::new(seed), places: HashMap::default(), last: None }
    }

    /// Returns the index of the connection of the flow `key`; `None` if there is none.
    #[inline]
    pub(crate) fn find(&mut self, key: &FlowKey) -> Option<u32> {
        if let Some((last, place)) = &self.last
            && last == key
        {
            return Some(*place);
        }
        let place = *self.places.get(&self.hashed(key))?;
        self.last = Some((*key, place));
        Some(place)
    }

    pub(crate) fn insert(&mut self, key: &FlowKey, place: u32) {
        self.last = None;
        self.places.insert(self.hashed(key), place);
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) {
        self.last = None;
        self.places.remove(&self.hashed(key));
    }

    #[inline]
    fn hashed(&self, key: &FlowKey) -> Hashed {
        Hashed { key: *key, hash: self.hasher.hash(key).0 }
    }
}

/// A flow key with its precomputed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hashed {
    key: FlowKey,
    hash: u64,
}

impl Hash for Hashed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A `Hasher` for keys that carry their hash: it returns the `u64` written to it.
#[derive(Debug, Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_found_until_it_is_removed() {
        let mut demux = Demux::new(1);
        let key = |port| FlowKey::v4(1, 2, port, 0);
        (0..100).for_each(|port| demux.insert(&key(port), port));
        assert!((0..100).all(|port| demux.find(&key(port)) == Some(port)));
        demux.remove(&key(99));
        assert_eq!((demux.find(&key(99)), demux.find(&key(7))), (None, Some(7)));
        demux.insert(&key(7), 1_000);
        assert_eq!(demux.find(&key(7)), Some(1_000));
    }
}
