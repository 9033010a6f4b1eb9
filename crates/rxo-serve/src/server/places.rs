//! Limits the number of clients from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the clients of each address. Clones share the counts. Servers on several threads access the shared
/// counts only when a client is admitted or leaves.
#[derive(Clone, Debug, Default)]
pub struct Places {
    of: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Places {
    /// Counts a new client at the address `peer`. Returns `false` if that address has `most` clients already.
    pub(super) fn take(&self, peer: IpAddr, most: usize) -> bool {
        let mut of = self.lock();
        let count = of.entry(holder(peer)).or_default();
        let has_room = *count < most;
        *count += usize::from(has_room);
        has_room
    }

    /// Counts the end of a client at the address `peer`.
    pub(super) fn release(&self, peer: IpAddr) {
        let (peer, mut of) = (holder(peer), self.lock());
        if let Some(count) = of.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                of.remove(&peer);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the address under which a client at `peer` is counted. For IPv6 this is the /64, because a host
/// can use all addresses in it.
fn holder(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => IpAddr::from((v6.to_bits() >> 64 << 64).to_be_bytes()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_does_not_take_all() {
        let places = Places::default();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let take = |text| places.take(ip(text), 2);
        assert!(take("10.0.0.9") && take("::ffff:10.0.0.9") && !take("10.0.0.9"));
        assert!(take("10.0.0.8") && take("fd00::1") && take("fd00::2"));
        assert!(!take("fd00::3"), "they share 64 bits");
        assert!(take("fd00:0:0:1::1"));
        places.release(ip("10.0.0.9"));
        assert!(places.take(ip("10.0.0.9"), 2) && !places.take(ip("10.0.0.9"), 2));
        for gone in ["10.0.0.9", "10.0.0.9", "10.0.0.8", "fd00::3", "fd00::3", "fd00:0:0:1::2"] {
            places.release(ip(gone));
        }
        assert!(places.lock().is_empty(), "nothing is kept");
    }
}
