//! The queue of connections that keep frames although the device needs them back.
//!
//! Data stays in the buffer in which it arrived until the application has read it. A ring that is written in
//! order stops at a single kept frame. So kept data is copied once a number of later frames has arrived: half
//! of the capacity of the ring. Time in this queue is measured in frames.

use std::collections::VecDeque;

use rxo_wire::SeqNumber;

use super::ticket::{Ticket, Tickets};

/// The connections that keep frames, in the order in which they began to keep frames.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Number of later frames after which kept data is copied; `None` if the device does not need its memory
    /// back.
    limit: Option<u64>,
    /// Number of frames received before this round.
    taken: u64,
    queue: VecDeque<Entry>,
    tickets: Tickets,
}

/// An entry of the queue: a connection that may keep frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) place: u32,
    /// The ticket of the entry, which identifies the connection, because indices are reused.
    pub(crate) ticket: Ticket,
    /// RCV.NXT when the connection was queued: the end of its received data.
    pub(crate) until: SeqNumber,
    at: u64,
}

impl Kept {
    /// Creates the queue for a device that lends at most `lends` frames; `None` if the device does not need its
    /// frames back. A round receives at most `budget` frames.
    pub(crate) fn new(lends: Option<usize>, budget: usize) -> Self {
        let limit = lends.map(|lends| (lends / 2).min(lends.saturating_sub(budget)) as u64);
        Self { limit, taken: 0, queue: VecDeque::new(), tickets: Tickets::new() }
    }

    /// Returns `true` if the device needs its memory back.
    pub(crate) const fn matters(&self) -> bool {
        self.limit.is_some()
    }

    /// Counts the `frames` that a round has received.
    pub(crate) fn count(&mut self, frames: usize) {
        self.taken += frames as u64;
    }

    /// Queues the connection at index `place`, which keeps frames of this round. Returns its ticket.
    pub(crate) fn push(&mut self, place: u32, until: SeqNumber) -> Ticket {
        let (ticket, at) = (self.tickets.next(), self.taken);
        self.queue.push_back(Entry { place, ticket, until, at });
        ticket
    }

    /// Removes and returns the oldest entry if it is due or `is_urgent` is `true`; otherwise returns `None`.
    pub(crate) fn pop(&mut self, is_urgent: bool) -> Option<Entry> {
        let (first, limit) = (self.queue.front()?, self.limit?);
        let is_due = is_urgent || self.taken.saturating_sub(first.at) > limit;
        if is_due { self.queue.pop_front() } else { None }
    }

    /// Puts an entry that could not be processed back to the front.
    pub(crate) fn push_front(&mut self, entry: Entry) {
        self.queue.push_front(entry);
    }

    /// Returns the number of connections in the queue.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_lap_later_it_is_time() {
        let mut kept = Kept::new(Some(100), 20);
        kept.push(7, SeqNumber(1));
        kept.count(50);
        assert!(kept.pop(false).is_none());
        kept.count(1);
        assert_eq!(kept.pop(false).map(|entry| entry.place), Some(7));
        assert!(kept.pop(true).is_none());
    }

    #[test]
    fn a_turn_always_finds_room() {
        // No more frames than the ring minus one budget may be kept before a round.
        let mut kept = Kept::new(Some(100), 80);
        kept.push(7, SeqNumber(1));
        kept.count(21);
        assert!(kept.pop(false).is_some());
    }

    #[test]
    fn a_device_that_lends_nothing_is_left_alone() {
        let mut kept = Kept::new(None, 80);
        assert!(!kept.matters());
        kept.push(7, SeqNumber(1));
        kept.count(1_000_000);
        assert!(kept.pop(true).is_none());
    }
}
