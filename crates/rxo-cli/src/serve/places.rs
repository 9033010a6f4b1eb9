//! Limits the number of clients, and of clients from one address.
//!
//! A place is taken before a client is accepted, so further clients wait in the listener's backlog and
//! cost nothing here. The address is known only after that: a client whose address has enough places gets
//! status 503, so that one address cannot keep all others out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The places, free and taken.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// A place of one client; given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    /// The client's address, once known.
    peer: Option<IpAddr>,
}

impl Places {
    /// Room for `most` clients; one address gets at most `most_of_one` places.
    pub(super) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, taken: Mutex::default(), freed: Condvar::new() })
    }

    /// Takes a place; `None` if none is free within `time`. One thread takes, many give back.
    pub(super) fn take(self: &Arc<Self>, time: Duration) -> Option<Place> {
        let mut taken = self.wait_while(time, |taken| taken.all >= self.most);
        let is_free = taken.all < self.most;
        taken.all += usize::from(is_free);
        is_free.then(|| Place { places: Arc::clone(self), peer: None })
    }

    /// Whether all places are taken. Then idle clients must not stay.
    pub(super) fn are_all_taken(&self) -> bool {
        self.lock().all >= self.most
    }

    /// Waits until all places are free, at most for `time`.
    pub(super) fn wait_until_empty(&self, time: Duration) {
        drop(self.wait_while(time, |taken| taken.all > 0));
    }

    fn wait_while(&self, time: Duration, is_so: impl Fn(&Taken) -> bool) -> MutexGuard<'_, Taken> {
        let waited = self.freed.wait_timeout_while(self.lock(), time, |taken| is_so(taken));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // No panic can leave the counts in disorder: each change is one step.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Gives the place to a client at `peer`. `None` if that address has enough; the place is then free
    /// again.
    pub(super) fn of(mut self, peer: IpAddr) -> Option<Self> {
        let peer = holder(peer);
        let mut taken = self.places.lock();
        let count = taken.of.entry(peer).or_default();
        let has_room = *count < self.places.most_of_one;
        *count += usize::from(has_room);
        drop(taken);
        self.peer = has_room.then_some(peer);
        has_room.then_some(self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all -= 1;
        if let Some(peer) = self.peer
            && let Some(count) = taken.of.get_mut(&peer)
        {
            *count -= 1;
            if *count == 0 {
                taken.of.remove(&peer);
            }
        }
        drop(taken);
        self.places.freed.notify_all();
    }
}

/// The address that counts: of IPv6 the /64, because a host can have all of its addresses.
fn holder(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => IpAddr::from((v6.to_bits() >> 64 << 64).to_be_bytes()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn nobody_comes_before_somebody_goes() {
        let places = Places::new(2, 2);
        let one = places.take(SOON).unwrap();
        let _two = places.take(SOON).unwrap();
        assert!(places.are_all_taken() && places.take(Duration::ZERO).is_none());
        let goes = thread::spawn(move || drop(one));
        assert!(places.take(SOON).is_some());
        goes.join().unwrap();
    }

    #[test]
    fn an_address_does_not_take_all() {
        let places = Places::new(8, 2);
        let take = |text: &str| places.take(SOON).unwrap().of(ip(text));
        let held = [take("10.0.0.9").unwrap(), take("::ffff:10.0.0.9").unwrap()];
        assert!(take("10.0.0.9").is_none());
        let others = [take("10.0.0.8"), take("fd00::1"), take("fd00::2")];
        assert!(others.iter().all(Option::is_some));
        assert!(take("fd00::3").is_none(), "they share 64 bits");
        assert!(take("fd00:0:0:1::1").is_some());
        drop(held);
        assert!(take("10.0.0.9").is_some());
        drop(others);
        let taken = places.lock();
        assert_eq!((taken.all, taken.of.len()), (0, 0), "nothing is kept");
    }
}
