//! Queue: the sockets for one queue of an interface, and the position (place) in the ring at which reading
//! continues.
//!
//! This module is separate because the sockets outlive the source and the sink that use them: a run that replaces
//! its workers, or that hands over to another process, drops source and sink, and frames that arrive meanwhile
//! wait in the ring. Contract: at most one source and one sink use a queue at a time, and both belong to the same
//! process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use super::arrivals::Counted;
use super::ring::RingMap;
use super::socket::is_deleted;
use crate::succession::Handed;

/// The sockets of a queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) source: Arc<OwnedFd>,
    pub(super) ring: Arc<RingMap>,
    pub(super) sink: OwnedFd,
    left: Mutex<Left>,
}

/// The position at which the next source of a queue continues: the slot in the ring, and the counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The index of the next slot to read.
    pub(super) slot: u32,
    /// The number of arrived frames that the queue's sources have accounted for so far: received, dropped or
    /// discarded.
    pub(super) accounted: u64,
    /// The number of frames that the system has counted for the socket.
    pub(super) packets: u64,
    /// The number of drops that the system has counted for the socket, minus the drops that the queue's last
    /// source has already reported.
    pub(super) drops: u64,
}

/// The state that a source has left, or that another process has handed over.
#[derive(Debug, Default)]
struct Left {
    place: Place,
    /// The kernel's live counters of the last source's socket, and the number of drops that this source had
    /// already reported. [`Queue::place`] subtracts these drops, so that the next source does not report them
    /// again. `None` if the counts in `place` are final.
    counted: Option<(Arc<Counted>, u64)>,
}

impl Queue {
    /// Creates the queue of a source that reads `ring` of the socket `source`, and of a sink that writes to `sink`.
    pub(super) fn new(source: Arc<OwnedFd>, ring: Arc<RingMap>, sink: OwnedFd) -> Self {
        Self { source, ring, sink, left: Mutex::default() }
    }

    /// Maps the ring of a queue that another process hands over: its two sockets, and the number and size of its slots.
    pub(super) fn inherit(
        [source, sink]: [OwnedFd; 2],
        [slots, slot_bytes]: [u64; 2],
    ) -> io::Result<Self> {
        let size = |number: u64| u32::try_from(number).map_err(io::Error::other);
        let ring = RingMap::of(source.as_fd(), size(slots)?, size(slot_bytes)?)?;
        Ok(Self::new(Arc::new(source), Arc::new(ring), sink))
    }

    /// Returns `true` if the interface of the sockets was deleted.
    pub(super) fn is_deleted(&self) -> bool {
        is_deleted(self.source.as_fd())
    }

    /// Adds the sockets and the size of the ring to `handed`, for [`Queue::inherit`].
    pub(super) fn hand_over(&self, handed: &mut Handed) -> io::Result<()> {
        let files = [self.source.try_clone()?, self.sink.try_clone()?];
        handed.files.extend(files);
        handed.numbers.extend([self.ring.slots(), self.ring.slot_bytes()].map(u64::from));
        Ok(())
    }

    /// Stores the place at which a source has stopped. `counted` contains the counters of its socket, and the
    /// number of drops that the source has already reported.
    pub(super) fn leave(&self, place: Place, counted: (Arc<Counted>, u64)) {
        *self.left() = Left { place, counted: Some(counted) };
    }

    /// Stores the place at which a source of another process has stopped, so that the next source continues
    /// there.
    pub(super) fn go_on_at(&self, place: Place) {
        *self.left() = Left { place, counted: None };
    }

    /// Returns the place at which the next source begins.
    pub(super) fn place(&self) -> Place {
        let left = self.left();
        let Some((counted, own_drops)) = &left.counted else { return left.place };
        let (packets, drops) = counted.sums();
        Place { packets, drops: drops.saturating_sub(*own_drops), ..left.place }
    }

    fn left(&self) -> std::sync::MutexGuard<'_, Left> {
        // The state is replaced as a whole, so a panic elsewhere leaves no half change.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The number of integers that encode a place.
    pub(super) const NUMBERS: usize = 4;

    /// Encodes the place as integers, to send it to another process.
    pub(super) fn to_numbers(self) -> [u64; Self::NUMBERS] {
        [u64::from(self.slot), self.accounted, self.packets, self.drops]
    }

    /// Decodes a place in a ring of `slots` slots; `None` if the slot is beyond the ring.
    pub(super) fn from_numbers(numbers: [u64; Self::NUMBERS], slots: u32) -> Option<Self> {
        let [slot, accounted, packets, drops] = numbers;
        let slot = u32::try_from(slot).ok().filter(|slot| *slot < slots)?;
        Some(Self { slot, accounted, packets, drops })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written_and_lies_in_its_ring() {
        let place = Place { slot: 63, accounted: 1_000, packets: u64::MAX, drops: 7 };
        assert_eq!(Place::from_numbers(place.to_numbers(), 64), Some(place));
        assert_eq!(Place::from_numbers(place.to_numbers(), 63), None);
    }
}
