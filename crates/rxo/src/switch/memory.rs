//! Memory of a switch: the addresses that it has learned, and the members of multicast groups.
//!
//! Separate from the decisions, because several switches on different threads may share one memory: an address that
//! moves must move for all of them, although its announcement arrives at one.
//!
//! Contract: a switch with a memory of its own locks nothing. A switch that shares its memory keeps the answers of the
//! last second, and reads one number for each question that they answer. It locks the memory once a second for each
//! address, for frames to multicast groups, and after a change of the memory, which makes all kept answers void.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rxo_frame::Instant;

use super::packet::Packet;
use super::snooping::{Receivers, Snooping};
use super::table::{Learned, Table};
use super::{MacAddress, Port};

/// An address in its VLAN.
type Address = (u16, MacAddress);

#[derive(Debug)]
pub(super) enum Memory {
    Own(Box<Known>),
    Shared(Sharer),
}

/// All that a switch, or several switches together, have learned.
#[derive(Debug)]
pub(super) struct Known {
    table: Table,
    snooping: Snooping,
}

/// A switch's access to a memory that it shares.
#[derive(Debug)]
pub(super) struct Sharer {
    common: Arc<Common>,
    /// The answers that still hold, by address.
    recent: HashMap<Address, Recent>,
    /// The number of changes of the memory when the answers were given.
    version: u64,
}

#[derive(Debug)]
struct Common {
    known: Mutex<Known>,
    /// The number of changes by which answers may have become wrong.
    version: AtomicU64,
}

/// The last answer about an address.
#[derive(Clone, Copy, Debug)]
struct Recent {
    /// The port of the address; `None` if the address is unknown.
    port: Option<Port>,
    /// The time until which the answer holds.
    until: Instant,
    /// The time until which the memory need not be told again that a frame has come from the address.
    told_until: Instant,
}

/// The time for which an answer holds; short beside the time for which addresses are remembered.
const HOLDS: Duration = Duration::from_secs(1);
/// Maximum number of answers that a switch keeps.
const MOST_RECENT: usize = 4_096;

impl Memory {
    pub(super) fn new(table: Table, snooping: Snooping) -> Self {
        Self::Own(Box::new(Known { table, snooping }))
    }

    /// Makes `count` accesses to this memory, for switches on different threads.
    pub(super) fn shared(self, count: usize) -> Vec<Self> {
        let common = match self {
            Self::Own(known) => {
                Arc::new(Common { known: Mutex::new(*known), version: AtomicU64::new(0) })
            }
            Self::Shared(sharer) => sharer.common,
        };
        let sharer = |common| Sharer { common, recent: HashMap::new(), version: 0 };
        (0..count).map(|_| Self::Shared(sharer(Arc::clone(&common)))).collect()
    }

    /// Records that a frame from `address` arrived at `port`. Returns the outcome.
    #[inline]
    pub(super) fn learn(&mut self, address: Address, port: Port, now: Instant) -> Learned {
        match self {
            Self::Own(known) => known.table.learn(address, port, now),
            Self::Shared(sharer) => sharer.learn(address, port, now),
        }
    }

    /// Returns the port at which `address` was learned; `None` if it is unknown or expired.
    #[inline]
    pub(super) fn find(&mut self, address: Address, now: Instant) -> Option<Port> {
        match self {
            Self::Own(known) => known.table.find(address, now),
            Self::Shared(sharer) => sharer.find(address, now),
        }
    }

    /// Returns the receivers of a frame for a group, as [`Snooping::receivers`] does.
    pub(super) fn receivers(
        &mut self,
        from: (Port, bool),
        group: Address,
        packet: &Packet<'_>,
        now: Instant,
    ) -> Receivers {
        match self {
            Self::Own(known) => known.snooping.receivers(from, group, packet, now),
            Self::Shared(sharer) => {
                sharer.common.lock().snooping.receivers(from, group, packet, now)
            }
        }
    }

    /// Forgets what was learned at `port`.
    pub(super) fn forget(&mut self, port: Port) {
        match self {
            Self::Own(known) => known.forget(port),
            Self::Shared(Sharer { common, .. }) => {
                common.lock().forget(port);
                common.changed();
            }
        }
    }

    /// Returns the number of learned addresses.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Own(known) => known.table.len(),
            Self::Shared(sharer) => sharer.common.lock().table.len(),
        }
    }
}

impl Known {
    fn forget(&mut self, port: Port) {
        self.table.forget(port);
        self.snooping.forget(port);
    }
}

impl Sharer {
    // Not inlined, so that a switch alone, which has no such memory, has its table's code in one piece.
    #[inline(never)]
    fn learn(&mut self, address: Address, port: Port, now: Instant) -> Learned {
        if self.recent(address).is_some_and(|it| it.port == Some(port) && now < it.told_until) {
            return Learned::Known;
        }
        let mut known = self.common.lock();
        let addresses = known.table.len();
        let learned = known.table.learn(address, port, now);
        let is_at_port = learned != Learned::Full;
        if matches!(learned, Learned::New | Learned::Moved) || known.table.len() != addresses {
            self.common.changed();
        }
        drop(known);
        if is_at_port {
            let until = now + HOLDS;
            self.keep(address, Recent { port: Some(port), until, told_until: until });
        }
        learned
    }

    #[inline(never)]
    fn find(&mut self, address: Address, now: Instant) -> Option<Port> {
        let recent = self.recent(address);
        if let Some(recent) = recent.filter(|it| now < it.until) {
            return recent.port;
        }
        let port = self.common.lock().table.find(address, now);
        let told_until = recent.map_or(Instant::ZERO, |it| it.told_until);
        self.keep(address, Recent { port, until: now + HOLDS, told_until });
        port
    }

    /// Returns the last answer about `address`, unless the memory has changed since.
    fn recent(&mut self, address: Address) -> Option<Recent> {
        let version = self.common.version.load(Ordering::Acquire);
        if version != self.version {
            self.version = version;
            self.recent.clear();
        }
        self.recent.get(&address).copied()
    }

    fn keep(&mut self, address: Address, recent: Recent) {
        if self.recent.len() == MOST_RECENT {
            self.recent.clear();
        }
        self.recent.insert(address, recent);
    }
}

impl Common {
    fn lock(&self) -> MutexGuard<'_, Known> {
        // A panic elsewhere leaves a table that may lack an address, which is learned again.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the answers void that switches keep.
    fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::switch::SwitchOptions;

    fn memory(options: SwitchOptions) -> Memory {
        Memory::new(Table::new(3, options), Snooping::new(3))
    }

    fn address(last: u8) -> Address {
        (0, MacAddress([2, 0, 0, 0, 0, last]))
    }

    proptest! {
        /// Whoever of several learns, forgets or asks: they answer as one switch alone. (Between the times here no
        /// address expires, since several may find one for a second longer, or forget it a second earlier.)
        #[test]
        fn several_know_what_one_would(
            steps in prop::collection::vec((0..3_usize, 0..9, 0..3_usize, 0..6_u8, 0..10), 1..300),
        ) {
            let options = SwitchOptions { most_addresses: 3, ageing: Duration::from_secs(20) };
            let (mut one, mut several) = (memory(options), memory(options).shared(3));
            let mut now = Instant::from_micros(1);
            for (who, what, port, last, pause) in steps {
                now = now + if pause == 0 { Duration::from_secs(7) } else { Duration::from_millis(1) };
                let (port, address, it) = (Port::new(port), address(last), &mut several[who]);
                match what {
                    0 => {
                        one.forget(port);
                        it.forget(port);
                    }
                    1..5 => prop_assert_eq!(it.learn(address, port, now), one.learn(address, port, now)),
                    _ => prop_assert_eq!(it.find(address, now), one.find(address, now)),
                }
                prop_assert_eq!(it.len(), one.len());
            }
        }
    }

    #[test]
    fn an_address_that_is_in_use_does_not_expire_and_needs_no_lock() {
        let ageing = Duration::from_secs(20);
        let mut all = memory(SwitchOptions { ageing, ..SwitchOptions::default() }).shared(2);
        let at = |ms: u64| Instant::from_micros(ms * 1_000);
        assert_eq!(all[0].learn(address(1), Port::new(1), at(0)), Learned::New);
        for ms in (0..100_000).step_by(10) {
            assert_eq!(all[1].find(address(1), at(ms)), Some(Port::new(1)), "{ms}");
            assert_eq!(all[0].learn(address(1), Port::new(1), at(ms)), Learned::Known, "{ms}");
        }
        let Memory::Shared(sharer) = &all[0] else { panic!("it is shared") };
        let common = Arc::clone(&sharer.common);
        let _held = common.known.lock().unwrap();
        // A lock would never be given.
        assert_eq!(all[0].learn(address(1), Port::new(1), at(99_991)), Learned::Known);
        assert_eq!(all[0].find(address(1), at(99_991)), Some(Port::new(1)));
    }

    #[test]
    fn an_address_that_moves_moves_for_all_at_once() {
        let mut all = memory(SwitchOptions::default()).shared(2);
        let now = Instant::from_micros(1);
        assert_eq!(all[1].find(address(1), now), None);
        for port in [1, 2, 1].map(Port::new) {
            all[0].learn(address(1), port, now);
            assert_eq!((all[1].find(address(1), now), all[0].len()), (Some(port), 1));
        }
        all[1].forget(Port::new(1));
        assert_eq!(all[0].find(address(1), now), None);
    }
}
