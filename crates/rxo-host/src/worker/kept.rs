//! Which connections keep frames that a device needs.
//!
//! Text stays in the buffer that it came in until the application has read it, and a single kept frame stops
//! a ring that is written in order. So text is copied when half a lap of frames has come since. Separate
//! because it is a queue with a clock that counts frames.

use std::collections::VecDeque;

use rxo_wire::SeqNumber;

use super::ticket::{Ticket, Tickets};

/// Connections that keep frames, the oldest first.
#[derive(Debug)]
pub(crate) struct Kept {
    /// After how many frames kept text is copied; `None` if never.
    limit: Option<u64>,
    /// The number of frames received before this turn.
    taken: u64,
    queue: VecDeque<Entry>,
    tickets: Tickets,
}

/// A connection that may keep frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) place: u32,
    /// Identifies the connection, because places are reused.
    pub(crate) ticket: Ticket,
    /// RCV.NXT when it was queued.
    pub(crate) until: SeqNumber,
    at: u64,
}

impl Kept {
    /// The queue for a device that lends `lends` frames; a turn receives at most `budget`.
    pub(crate) fn new(lends: Option<usize>, budget: usize) -> Self {
        let limit = lends.map(|lends| (lends / 2).min(lends.saturating_sub(budget)) as u64);
        Self { limit, taken: 0, queue: VecDeque::new(), tickets: Tickets::new() }
    }

    /// Whether the device needs its memory back at all.
    pub(crate) const fn matters(&self) -> bool {
        self.limit.is_some()
    }

    /// Counts the `frames` of a turn.
    pub(crate) fn count(&mut self, frames: usize) {
        self.taken += frames as u64;
    }

    /// Queues the connection at `place`, which keeps frames of this turn. Returns its ticket.
    pub(crate) fn push(&mut self, place: u32, until: SeqNumber) -> Ticket {
        let (ticket, at) = (self.tickets.next(), self.taken);
        self.queue.push_back(Entry { place, ticket, until, at });
        ticket
    }

    /// Takes the oldest entry if it is due or `is_urgent`.
    pub(crate) fn pop(&mut self, is_urgent: bool) -> Option<Entry> {
        let (first, limit) = (self.queue.front()?, self.limit?);
        let is_due = is_urgent || self.taken.saturating_sub(first.at) > limit;
        if is_due { self.queue.pop_front() } else { None }
    }

    /// Puts an entry that could not be handled back to the front.
    pub(crate) fn put_back(&mut self, entry: Entry) {
        self.queue.push_front(entry);
    }

    /// The number of entries.
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
        // At most so many frames were kept before this turn, beside its budget.
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
