//! Table of learned addresses, bounded for each port, whose entries expire.
//!
//! At a port with its maximum number of addresses, no more addresses are learned, so that the port takes no
//! space from other ports. An expired address is not found, but keeps its entry until the port needs the space.
//! Then the table is searched for expired addresses, at most once per second, so that a sender with many
//! addresses costs little.

use std::collections::HashMap;
use std::time::Duration;

use rxo_frame::Instant;

use super::{MacAddress, Port, SwitchOptions};

/// The minimum time between two searches of the table for expired addresses.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Table {
    /// The learned addresses with their ports, by VLAN and address. The hash is keyed at random, so senders cannot
    /// cause collisions.
    places: HashMap<(u16, MacAddress), Place>,
    /// The number of table entries of each port.
    counts: Vec<usize>,
    most: usize,
    ageing: Duration,
    next_search: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    port: Port,
    seen_at: Instant,
}

/// The outcome of learning an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// The address was known at the port where it was seen.
    Known,
    /// The address was not known.
    New,
    /// The address was known at another port, and has moved to the port where it was seen.
    Moved,
    /// The address was not learned, because its port already has the maximum number of addresses. If the
    /// address was known at another port, that entry is removed.
    Full,
}

impl Table {
    pub(super) fn new(ports: usize, options: SwitchOptions) -> Self {
        Self {
            places: HashMap::with_capacity(ports * options.most_addresses),
            counts: vec![0; ports],
            most: options.most_addresses,
            ageing: options.ageing,
            next_search: Instant::ZERO,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Records that a frame from this address and VLAN arrived at `port` at time `now`. Returns the outcome.
    #[inline]
    pub(super) fn learn(
        &mut self,
        address: (u16, MacAddress),
        port: Port,
        now: Instant,
    ) -> Learned {
        let ageing = self.ageing;
        if let Some(place) = self.places.get_mut(&address).filter(|place| place.port == port) {
            let before = std::mem::replace(&mut place.seen_at, now);
            return if is_aged(before, ageing, now) { Learned::New } else { Learned::Known };
        }
        let before = self.remove(address);
        if self.is_full(port) {
            self.make_room(now);
        }
        if self.is_full(port) {
            return Learned::Full;
        }
        self.places.insert(address, Place { port, seen_at: now });
        self.counts[port.index()] += 1;
        match before {
            Some(before) if !is_aged(before.seen_at, ageing, now) => Learned::Moved,
            _ => Learned::New,
        }
    }

    /// Returns the port at which this address was learned in this VLAN; `None` if it is unknown or expired.
    #[inline]
    pub(super) fn find(&mut self, address: (u16, MacAddress), now: Instant) -> Option<Port> {
        let place = *self.places.get(&address)?;
        if is_aged(place.seen_at, self.ageing, now) {
            self.remove(address);
            return None;
        }
        Some(place.port)
    }

    pub(super) fn forget(&mut self, port: Port) {
        self.places.retain(|_, place| place.port != port);
        self.counts[port.index()] = 0;
    }

    fn remove(&mut self, address: (u16, MacAddress)) -> Option<Place> {
        let place = self.places.remove(&address)?;
        self.counts[place.port.index()] -= 1;
        Some(place)
    }

    fn is_full(&self, port: Port) -> bool {
        self.counts[port.index()] >= self.most
    }

    fn make_room(&mut self, now: Instant) {
        if now >= self.next_search {
            let Self { places, counts, ageing, .. } = self;
            places.retain(|_, place| {
                let is_aged = is_aged(place.seen_at, *ageing, now);
                counts[place.port.index()] -= usize::from(is_aged);
                !is_aged
            });
            self.next_search = now + SEARCH_EVERY;
        }
    }
}

fn is_aged(seen_at: Instant, ageing: Duration, now: Instant) -> bool {
    now.since(seen_at) > ageing
}
