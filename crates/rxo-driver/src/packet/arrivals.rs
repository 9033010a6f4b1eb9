//! Arrivals: counts the frames that arrived for a source, received or not.
//!
//! This module is separate because several sources may share one interface. The system counts the frames of the
//! interface, and the frames that its filter passed to each socket. The first source of a group accounts for all
//! frames of the interface that the other sockets did not receive. So a frame that no socket received counts as a
//! loss of the first source. Contract: any thread may read the count of any socket, which the system resets with
//! each reading.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::queue::Place;
use crate::interface::Interface;
use crate::statistics::Statistics;
use crate::sys;

/// The number of frames that have arrived for one source, by the system's count.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The interface's counter; `None` if the system does not count, or if another source of the group reads
    /// it.
    statistics: Option<Statistics>,
    /// The number of packets that had arrived before the source was opened. Packets that arrive while the source
    /// is being opened may be counted twice, but none is missed.
    before: u64,
    socket: Arc<Counted>,
    /// The sockets of the group's other sources, if the source is the first of its group; otherwise empty.
    others: Vec<Arc<Counted>>,
    /// `true` if the socket receives only some of the interface's frames.
    is_shared: bool,
}

/// A socket, and the sums of the packets and drops that the system has counted for it.
#[derive(Debug)]
pub(super) struct Counted {
    socket: Arc<OwnedFd>,
    packets: AtomicU64,
    drops: AtomicU64,
}

impl Counted {
    /// Adds the system's counts since the last reading to the sums. If the socket is gone, the sums stay
    /// unchanged.
    fn read(&self) {
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        if let Ok(new) = sys::option::<libc::tpacket_stats>(self.socket.as_fd(), level, option) {
            self.packets.fetch_add(new.tp_packets.into(), Ordering::Relaxed);
            self.drops.fetch_add(new.tp_drops.into(), Ordering::Relaxed);
        }
    }

    fn packets(&self) -> u64 {
        self.read();
        self.packets.load(Ordering::Relaxed)
    }

    /// Returns the sums of packets and of drops, as of the last reading.
    pub(super) fn sums(&self) -> (u64, u64) {
        (self.packets.load(Ordering::Relaxed), self.drops.load(Ordering::Relaxed))
    }

    /// Sets the sums to those in `place`, at which another source has stopped.
    fn resume(&self, place: Place) {
        self.packets.store(place.packets, Ordering::Relaxed);
        self.drops.store(place.drops, Ordering::Relaxed);
    }
}

impl Arrivals {
    /// Creates the count for a source that receives all frames of `interface`.
    pub(super) fn of(interface: &Interface, socket: Arc<OwnedFd>) -> Self {
        let statistics = interface.index().ok().and_then(|index| Statistics::of(index).ok());
        let mut arrivals = Self { statistics, ..Self::none(socket) };
        arrivals.before = arrivals.received().unwrap_or(0);
        arrivals
    }

    /// Creates counts that cover only the drops of a socket.
    pub(super) fn none(socket: Arc<OwnedFd>) -> Self {
        let socket = Counted { socket, packets: AtomicU64::new(0), drops: AtomicU64::new(0) };
        let (socket, others) = (Arc::new(socket), Vec::new());
        Self { statistics: None, before: 0, socket, others, is_shared: false }
    }

    /// Restarts the counts of the sources of a group, whose rings are empty. The first of `all` also accounts for
    /// the frames that no socket receives.
    pub(super) fn share(all: &mut [&mut Self]) {
        for one in &mut *all {
            one.socket.read();
            one.socket.resume(Place::default());
            one.before = 0;
        }
        Self::join(all);
        if let Some(first) = all.first_mut() {
            first.before = first.received().unwrap_or(0);
        }
    }

    /// Makes the first source of `all` account for the frames that no socket of the group receives.
    pub(super) fn join(all: &mut [&mut Self]) {
        let sockets: Vec<_> = all.iter().map(|one| Arc::clone(&one.socket)).collect();
        for (n, one) in all.iter_mut().enumerate() {
            one.is_shared = true;
            if n > 0 {
                one.statistics = None;
            }
        }
        if let Some(first) = all.first_mut() {
            first.others = sockets.get(1..).unwrap_or_default().to_vec();
        }
    }

    /// Continues the counts of a source that has stopped at `place`.
    pub(super) fn resume(&mut self, place: Place) {
        self.before = place.accounted;
        self.socket.resume(place);
    }

    /// Returns the counts of the socket, and the number of packets that had arrived before the source was opened.
    pub(super) fn state(&self) -> (Arc<Counted>, u64) {
        (Arc::clone(&self.socket), self.before)
    }

    /// Returns the number of packets that have arrived for the source; `None` if the system does not count
    /// them.
    pub(super) fn read(&self) -> Option<u64> {
        let counted = match (&self.statistics, self.is_shared) {
            (Some(_), _) => {
                let received = self.received()?;
                // Read after the interface's counter: a frame in between hides a loss, but does not appear as
                // one.
                let of_others = self.others.iter().map(|other| other.packets()).sum();
                received.saturating_sub(of_others)
            }
            (None, true) => self.socket.packets(),
            (None, false) => return None,
        };
        Some(counted.saturating_sub(self.before))
    }

    /// Counts a discarded frame as one that arrived before the source was opened.
    pub(super) const fn discard(&mut self) {
        self.before += 1;
    }

    /// Returns the number of packets that the system dropped because the ring was full.
    pub(super) fn drops(&self) -> u64 {
        self.socket.read();
        self.socket.drops.load(Ordering::Relaxed)
    }

    fn received(&self) -> Option<u64> {
        self.statistics.as_ref()?.read().map(|now| now.received)
    }
}
