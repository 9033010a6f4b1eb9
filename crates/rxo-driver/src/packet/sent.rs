//! Sent: counts the packets of one port that have left the interface, even if several ports send through it.
//!
//! This module is separate because the system counts the packets that leave an interface, but does not count them
//! for each socket. The first port accounts for all ports: its count is the number of packets that have left,
//! minus the packets that the other ports wrote.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::departures::Departures;
use crate::interface::Interface;
use crate::sys;

/// The number of packets of one port among those that have left its interface.
#[derive(Debug)]
pub(super) struct Sent {
    /// The interface's counters, opened together with the device because a confined process may not open
    /// them. `None` if no descriptors are left, or if another port reads them.
    departures: Option<Departures>,
    /// The interface's other ports, if this port is its first; otherwise empty.
    others: Vec<Other>,
    /// The number of packets that this port has written, which the interface's first port reads; `None` if
    /// this port is the first.
    written: Option<Arc<AtomicU64>>,
}

/// Another port of the interface: its socket, and the packets that it has written.
#[derive(Debug)]
struct Other {
    socket: OwnedFd,
    written: Arc<AtomicU64>,
}

impl Sent {
    /// Creates the count for the only port of `interface`, or for the first of several.
    pub(super) fn of(interface: &Interface) -> Self {
        let departures = interface.index().ok().and_then(|index| Departures::of(index).ok());
        Self { departures, others: Vec::new(), written: None }
    }

    /// Makes this port also account for `other`, which sends through `socket`.
    pub(super) fn add_queue(&mut self, socket: OwnedFd, other: &mut Self) {
        let written = Arc::<AtomicU64>::default();
        (other.departures, other.written) = (None, Some(Arc::clone(&written)));
        self.others.push(Other { socket, written });
    }

    /// Returns `true` if this is the interface's first port, which accounts for all others.
    pub(super) const fn is_first(&self) -> bool {
        self.written.is_none()
    }

    /// Counts `packets` packets that were written. The first port does not count them.
    pub(super) fn count(&self, packets: usize) {
        if let Some(written) = &self.written {
            // Only the thread of this port writes the count.
            let before = written.load(Ordering::Relaxed);
            written.store(before + packets as u64, Ordering::Relaxed);
        }
    }

    /// Returns the number of packets of this port that have left the interface. `None` if the count is
    /// unknown, or if packets of the other ports are still queued.
    pub(super) fn departed(&mut self) -> Option<u64> {
        // Read before the queues are examined: a packet that is written meanwhile hides a loss, but does not
        // appear as one.
        let of_others: u64 = self.others.iter().map(Other::written).sum();
        let mut others = self.others.iter();
        let is_empty = others.all(|it| sys::unsent_bytes(it.socket.as_fd()).is_ok_and(|n| n == 0));
        let departed = self.departures.as_mut()?.read()?;
        is_empty.then(|| departed.wrapping_sub(of_others))
    }
}

impl Other {
    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}
