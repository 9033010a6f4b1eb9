//! The addresses that were learned: bounded for each port, and forgotten with time.
//!
//! A port with as many addresses as it may have learns no more, and takes no room from other ports. An aged
//! address is not found, but keeps its place until the port needs it: then the table is searched for aged
//! addresses, at most once a second, so that a sender of many addresses costs little.

use std::collections::HashMap;
use std::time::Duration;

use rxo_frame::Instant;

use super::{MacAddress, Port, SwitchOptions};

/// Between two searches for aged addresses.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Table {
    /// By VLAN and address. The hash is keyed at random, so senders cannot make collisions.
    places: HashMap<(u16, MacAddress), Place>,
    /// How many addresses each port has, and may have.
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

/// What became of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// It was known at this port.
    Known,
    /// It was not known.
    New,
    /// It was known at another port.
    Moved,
    /// It was not known at this port, which has no room for it. It is forgotten if it was known elsewhere.
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

    /// A frame from this address came in at `port`.
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

    /// The port behind which an address is.
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
