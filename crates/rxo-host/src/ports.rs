//! The local ports of connections that this host opens.
//!
//! Two connections may have equal local ports if their peers differ. So this module tracks pairs of sockets
//! instead of ports, and all ports can be used with each destination (RFC 6056, section 3.3.4). Application
//! threads choose ports, and may block each other. The worker never blocks: while a thread chooses a port, the
//! worker postpones its changes.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rxo_tcp::Secret;
use rxo_wire::{FlowHasher, FlowKey};

use crate::demux::AsItIs;

/// The pairs of sockets in use whose local port is in the dynamic range.
#[derive(Debug)]
pub(crate) struct Ports {
    secret: Secret,
    hasher: FlowHasher,
    /// The hashes of the pairs in use. If two pairs have equal hashes, the later connection gets another port.
    taken: Mutex<HashSet<u64, BuildHasherDefault<AsItIs>>>,
    /// Number of ports tried so far, one counter per hash value of the destination.
    tried: Box<[AtomicU16]>,
}

/// A change in the use of a pair of sockets, reported by the worker.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PortChange {
    /// A connection that a peer has opened uses the pair.
    Taken(FlowKey),
    /// The pair of sockets is free again.
    Free(FlowKey),
}

impl Ports {
    pub(crate) fn new(secret: Secret) -> Self {
        // RFC 6056, section 3.3.4: the counters start with random numbers.
        let group =
            |index: u32| AtomicU16::new(secret.port_hash(&FlowKey::v4(0, index, 0, 0)) as u16);
        Self {
            secret,
            hasher: FlowHasher::new(secret.0[0]),
            taken: Mutex::default(),
            tried: (0..GROUPS).map(group).collect(),
        }
    }

    /// Reserves a pair from `source`, whose port is ignored, to `remote`. The chosen local port is not in
    /// `avoided`, no other connection to `remote` uses it, and `fits` accepts the pair. `None` if there is no
    /// such port, or if the IP versions differ.
    pub(crate) fn take(
        &self,
        source: SocketAddr,
        remote: SocketAddr,
        avoided: &[u16],
        fits: impl Fn(&FlowKey) -> bool,
    ) -> Option<FlowKey> {
        let hash = self.secret.port_hash(&FlowKey::between(source, remote)?);
        let (offset, group) = (hash as u16, &self.tried[(hash >> 32) as usize % self.tried.len()]);
        let mut taken = self.lock();
        (0..COUNT).find_map(|_| {
            let tried = group.fetch_add(1, Ordering::Relaxed);
            let port = FIRST + offset.wrapping_add(tried) % COUNT;
            let pair = FlowKey::between(SocketAddr::new(source.ip(), port), remote)?;
            let may_be = !avoided.contains(&port) && fits(&pair);
            let is_free = may_be && taken.insert(self.hash(&pair));
            is_free.then_some(pair)
        })
    }

    /// Frees a pair of addresses and ports that was reserved and never used. May block, so the worker must
    /// not call it.
    pub(crate) fn release(&self, pair: &FlowKey) {
        self.lock().remove(&self.hash(pair));
    }

    /// Returns `true` if pairs with this local port are tracked.
    pub(crate) const fn counts(port: u16) -> bool {
        port >= FIRST
    }

    /// Applies the worker's changes and removes them from `changes`. If a thread is choosing a port now, the
    /// changes stay for the next call.
    pub(crate) fn change(&self, changes: &mut Vec<PortChange>) {
        let mut taken = match self.taken.try_lock() {
            Ok(taken) => taken,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        for change in changes.drain(..) {
            match change {
                PortChange::Taken(pair) => taken.insert(self.hash(&pair)),
                PortChange::Free(pair) => taken.remove(&self.hash(&pair)),
            };
        }
    }

    fn hash(&self, pair: &FlowKey) -> u64 {
        self.hasher.hash(pair).0
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<u64, BuildHasherDefault<AsItIs>>> {
        // A panic leaves at most one pair reserved that is not used.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the dynamic port to try in attempt number `step`, for a listener without a given port.
pub(crate) const fn any(step: u16) -> u16 {
    FIRST + step % COUNT
}

/// The first of the dynamic ports (RFC 6335, section 6).
const FIRST: u16 = 49_152;
pub(crate) const COUNT: u16 = 16_384;
const GROUPS: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn ports() -> Ports {
        Ports::new(Secret([7, 11]))
    }

    fn taken(ports: &Ports, remote: &str) -> Vec<u16> {
        let take = || ports.take(socket("10.0.0.1:0"), socket(remote), &[], |_| true);
        std::iter::from_fn(take).map(|pair| pair.source_port()).collect()
    }

    #[test]
    fn each_destination_has_all_ports() {
        let ports = ports();
        for remote in ["10.0.0.2:80", "10.0.0.2:81", "10.0.0.3:80"] {
            let mut all = taken(&ports, remote);
            all.sort_unstable();
            assert!(all.iter().copied().eq(FIRST..=u16::MAX), "{remote}: {}", all.len());
        }
    }

    /// RFC 6056, section 3.3.4: the ports to one destination do not reveal those to another.
    #[test]
    fn ports_begin_elsewhere_for_each_destination_and_secret() {
        let first = |secret, remote: &str| {
            let pair =
                Ports::new(Secret(secret))
                    .take(socket("10.0.0.1:0"), socket(remote), &[], |_| true);
            pair.unwrap().source_port()
        };
        let rows = [([1, 2], "10.0.0.2:80"), ([1, 2], "10.0.0.2:81"), ([1, 3], "10.0.0.2:80")];
        let [a, b, c] = rows.map(|(secret, remote)| first(secret, remote));
        assert!(a != b && a != c && b != c, "{a} {b} {c}");
        assert_eq!(first([1, 2], "10.0.0.2:80"), a);
    }

    #[test]
    fn what_is_avoided_or_taken_by_a_peer_is_left_out() {
        let ports = ports();
        let all = taken(&ports, "10.0.0.2:80");
        let pair = |port: u16| {
            let source = SocketAddr::new([10, 0, 0, 1].into(), port);
            FlowKey::between(source, socket("10.0.0.2:80")).unwrap()
        };
        let mut changes: Vec<_> =
            all[..3].iter().map(|port| PortChange::Free(pair(*port))).collect();
        changes.push(PortChange::Taken(pair(all[0])));
        ports.change(&mut changes);
        assert!(changes.is_empty());
        let take = || ports.take(socket("10.0.0.1:0"), socket("10.0.0.2:80"), &[all[1]], |_| true);
        assert_eq!((take().map(|pair| pair.source_port()), take()), (Some(all[2]), None));
    }

    #[test]
    fn the_worker_does_not_wait_for_who_is_choosing() {
        let ports = ports();
        let pair = ports.take(socket("10.0.0.1:0"), socket("10.0.0.2:80"), &[], |_| true).unwrap();
        let mut changes = vec![PortChange::Free(pair)];
        let choosing = ports.lock();
        ports.change(&mut changes);
        assert_eq!(changes.len(), 1);
        drop(choosing);
        ports.change(&mut changes);
        assert!(changes.is_empty() && ports.lock().is_empty());
    }
}
