//! Which connections keep frames that a device wants back.
//!
//! Text stays in the buffer it came in until the application has read it, and a ring that is written
//! from end to end is stopped by one frame that somebody keeps. So what is kept when half a lap of
//! frames has come since is copied. Separate because it is a clock and a queue: the clock counts frames.

use std::collections::VecDeque;

use rxo_wire::SeqNumber;

/// Connections that keep frames, the oldest first.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Frames after which what is kept is copied; `None`: never.
    limit: Option<u64>,
    /// Frames taken before this turn.
    taken: u64,
    queue: VecDeque<Entry>,
    last_ticket: u64,
}

/// A connection that kept a frame at some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) place: u32,
    /// Says whether the place is still that connection's.
    pub(crate) ticket: u64,
    /// RCV.NXT at that time.
    pub(crate) until: SeqNumber,
    at: u64,
}

impl Kept {
    /// For a device that lends so many frames, of which a turn takes `budget`.
    pub(crate) fn new(lends: Option<usize>, budget: usize) -> Self {
        let limit = lends.map(|lends| (lends / 2).min(lends.saturating_sub(budget)) as u64);
        Self { limit, taken: 0, queue: VecDeque::new(), last_ticket: 0 }
    }

    /// Whether the device wants its memory back at all.
    pub(crate) const fn matters(&self) -> bool {
        self.limit.is_some()
    }

    /// A turn has taken `frames`.
    pub(crate) fn count(&mut self, frames: usize) {
        self.taken += frames as u64;
    }

    /// The connection at `place` keeps frames of this turn; gives it a ticket.
    pub(crate) fn push(&mut self, place: u32, until: SeqNumber) -> u64 {
        self.last_ticket += 1;
        let (ticket, at) = (self.last_ticket, self.taken);
        self.queue.push_back(Entry { place, ticket, until, at });
        ticket
    }

    /// Takes the oldest, if it is time for it; with `is_urgent` it is.
    pub(crate) fn pop(&mut self, is_urgent: bool) -> Option<Entry> {
        let (first, limit) = (self.queue.front()?, self.limit?);
        let is_due = is_urgent || self.taken.saturating_sub(first.at) > limit;
        if is_due { self.queue.pop_front() } else { None }
    }

    /// It could not be done now; it is the oldest again.
    pub(crate) fn put_back(&mut self, entry: Entry) {
        self.queue.push_front(entry);
    }

    /// How many connections keep frames, as far as is known.
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
        // Kept before this turn: at most what is left beside a budget.
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
