//! The addresses that were learned: bounded, and forgotten with time.
//!
//! An aged address is not found, but keeps its place until its place is needed: a full table is searched
//! for aged addresses, at most once a second, so that a sender of many addresses costs little.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use rxo_frame::Instant;

use super::{MacAddress, Port, SwitchOptions};

/// Between two searches for aged addresses.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Table {
    /// By VLAN and address. The hash is keyed at random, so senders cannot make collisions.
    places: HashMap<(u16, MacAddress), Place>,
    most: usize,
    ageing: Duration,
    next_search: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    port: Port,
    seen_at: Instant,
}

/// What became of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// It was known at this port.
    Known,
    /// It was not known.
    New,
    /// It was known at another port.
    Moved,
    /// It was not known, and there is no room.
    Full,
}

impl Table {
    pub(super) fn new(options: SwitchOptions) -> Self {
        Self {
            places: HashMap::with_capacity(options.most_addresses),
            most: options.most_addresses,
            ageing: options.ageing,
            next_search: Instant::ZERO,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// A frame from this address came in at `port`.
    pub(super) fn learn(
        &mut self,
        address: (u16, MacAddress),
        port: Port,
        now: Instant,
    ) -> Learned {
        let ageing = self.ageing;
        if self.places.len() >= self.most && !self.places.contains_key(&address) {
            self.make_room(now);
        }
        let is_full = self.places.len() >= self.most;
        match self.places.entry(address) {
            Entry::Occupied(mut entry) => {
                let before = entry.insert(Place { port, seen_at: now });
                if before.is_aged(ageing, now) {
                    Learned::New
                } else if before.port == port {
                    Learned::Known
                } else {
                    Learned::Moved
                }
            }
            Entry::Vacant(_) if is_full => Learned::Full,
            Entry::Vacant(entry) => {
                entry.insert(Place { port, seen_at: now });
                Learned::New
            }
        }
    }

    /// The port behind which an address is.
    pub(super) fn find(&mut self, address: (u16, MacAddress), now: Instant) -> Option<Port> {
        let place = *self.places.get(&address)?;
        if place.is_aged(self.ageing, now) {
            self.places.remove(&address);
            return None;
        }
        Some(place.port)
    }

    pub(super) fn forget(&mut self, port: Port) {
        self.places.retain(|_, place| place.port != port);
    }

    fn make_room(&mut self, now: Instant) {
        if now >= self.next_search {
            let ageing = self.ageing;
            self.places.retain(|_, place| !place.is_aged(ageing, now));
            self.next_search = now + SEARCH_EVERY;
        }
    }
}

impl Place {
    fn is_aged(self, ageing: Duration, now: Instant) -> bool {
        now.since(self.seen_at) > ageing
    }
}
