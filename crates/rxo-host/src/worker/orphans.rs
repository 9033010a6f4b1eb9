//! Orphans: connections that the application has dropped and that are not closed yet.
//!
//! This module limits the number of orphans whose peers accept almost no data. The memory of orphans counts
//! towards the host's memory, and each connection limits the time for which it waits for a peer that accepts
//! little data. An orphan whose peer reads slowly but steadily is never reset because of the limit on the
//! number.

use std::collections::VecDeque;

use rxo_frame::{Duration, Instant};

use super::connections::Connections;
use super::slots::Slot;
use super::ticket::{Ticket, Tickets};

/// The queue of orphans. The orphan whose peer has made no sufficient progress for the longest time is at the
/// front.
#[derive(Debug)]
pub(super) struct Orphans {
    limit: usize,
    /// The orphans in order of their last progress. Entries of closed connections are removed later.
    queue: VecDeque<Waiting>,
    live: usize,
    tickets: Tickets,
}

/// An orphan that waits for its peer.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    place: u32,
    ticket: Ticket,
    /// The time of the last check at which the peer had accepted enough.
    since: Instant,
    /// Number of unacknowledged bytes at the time `since`.
    left_bytes: usize,
}

impl Orphans {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, queue: VecDeque::new(), live: 0, tickets: Tickets::new() }
    }

    /// Returns the number of orphans.
    pub(super) const fn len(&self) -> usize {
        self.live
    }

    /// Adds the connection at index `place`, and returns its ticket. `since` is the current time, and
    /// `left_bytes` the connection's number of unacknowledged bytes. `is_live` returns `true` if a ticket
    /// still belongs to that index.
    pub(super) fn push(
        &mut self,
        place: u32,
        (since, left_bytes): (Instant, usize),
        is_live: impl Fn(u32, Ticket) -> bool,
    ) -> Ticket {
        while self.queue.front().is_some_and(|it| !is_live(it.place, it.ticket)) {
            self.queue.pop_front();
        }
        if self.queue.len() > 2 * self.live.max(self.limit) {
            self.queue.retain(|it| is_live(it.place, it.ticket));
        }
        let ticket = self.tickets.next();
        self.queue.push_back(Waiting { place, ticket, since, left_bytes });
        self.live += 1;
        ticket
    }

    /// Counts the end of an orphan.
    pub(super) fn remove(&mut self) {
        self.live -= 1;
    }

    /// If there are too many orphans, removes and returns the orphan that has been stalled for the longest
    /// time; `None` if none is stalled. An orphan is stalled if its peer has accepted less than [`LEAST_TAKEN`]
    /// bytes for at least [`STALLED`]. Checks at most [`MOST_CHECKED`] entries. `left_bytes` returns the number
    /// of unacknowledged bytes, or `None` if the ticket no longer belongs to that index.
    pub(super) fn pop_stalled(
        &mut self,
        now: Instant,
        mut left_bytes: impl FnMut(u32, Ticket) -> Option<usize>,
    ) -> Option<(u32, Ticket)> {
        for _ in 0..MOST_CHECKED {
            let first = *self.queue.front().filter(|_| self.live > self.limit)?;
            let left_bytes = left_bytes(first.place, first.ticket);
            let is_stalled = left_bytes.is_some_and(|left| left + LEAST_TAKEN > first.left_bytes);
            if is_stalled && now.since(first.since) < STALLED {
                return None;
            }
            self.queue.pop_front();
            match left_bytes {
                Some(_) if is_stalled => return Some((first.place, first.ticket)),
                Some(left_bytes) => {
                    self.queue.push_back(Waiting { since: now, left_bytes, ..first });
                }
                None => {}
            }
        }
        None
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Connections<B> {
    /// Records that the connection at index `place` is an orphan. If there are too many orphans, resets some
    /// whose peers have accepted less than [`LEAST_TAKEN`] bytes within [`STALLED`].
    pub(super) fn add_orphan(&mut self, place: u32, now: Instant) {
        let Some(slot) = self.slots.get(place).filter(|slot| slot.orphan.is_none()) else { return };
        let (slots, begin) = (&self.slots, (now, left_bytes(slot)));
        let is_live = |place, ticket| {
            slots.get(place).is_some_and(|slot: &Slot<B>| slot.orphan == Some(ticket))
        };
        let ticket = self.orphans.push(place, begin, is_live);
        if let Some(slot) = self.slots.get_mut(place) {
            slot.orphan = Some(ticket);
        }
        while self.reset_stalled(now) {}
    }

    /// Resets one stalled orphan. Returns `false` if no orphan must be reset.
    fn reset_stalled(&mut self, now: Instant) -> bool {
        let slots = &self.slots;
        let left = |place, ticket| {
            slots.get(place).filter(|slot| slot.orphan == Some(ticket)).map(left_bytes)
        };
        let stalled = self.orphans.pop_stalled(now, left);
        let Some((place, _)) = stalled else { return false };
        let Some(slot) = self.slots.get_mut(place) else { return false };
        slot.orphan = None;
        slot.cell.with(|inner| inner.connection.abort());
        self.orphans.remove();
        self.counters.tcp.orphans_reset += 1;
        self.touch(place);
        true
    }
}

/// Returns the number of unacknowledged bytes. May block: only a thread that lists connections can hold the
/// lock, and only briefly.
fn left_bytes<B: AsRef<[u8]> + Default + Send + Sync + 'static>(slot: &Slot<B>) -> usize {
    slot.cell.with(|inner| inner.connection.unacknowledged_bytes())
}

/// Number of bytes that a peer must accept within [`STALLED`]. Without this minimum, a peer that accepts single
/// bytes could keep an orphan for ever.
const LEAST_TAKEN: usize = 16 << 10;
/// Number of orphans that are checked when one is added.
const MOST_CHECKED: usize = 16;
/// The minimum time without progress before an orphan is reset. Some peers reopen their window only when half
/// of a buffer is free; this time is enough for a peer that reads a kilobyte per second.
const STALLED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    const ALL: usize = 1_000_000;

    fn added(orphans: &mut Orphans, place: u32, seconds: u64) -> Ticket {
        orphans.push(place, (at(seconds), ALL), |_, _| true)
    }

    #[test]
    fn the_one_that_took_nothing_for_longest_gives_way() {
        let mut orphans = Orphans::new(2);
        added(&mut orphans, 7, 0);
        let second = added(&mut orphans, 8, 10);
        let nothing = |_, _| Some(ALL);
        assert_eq!(orphans.pop_stalled(at(100), nothing), None, "there is room");
        added(&mut orphans, 9, 15);
        assert_eq!(orphans.pop_stalled(at(59), nothing), None, "it may be slow");
        let one_takes = |place, _| Some(ALL - if place == 7 { LEAST_TAKEN } else { 1 });
        assert_eq!(orphans.pop_stalled(at(69), one_takes), None);
        assert_eq!(orphans.pop_stalled(at(70), one_takes), Some((8, second)));
        orphans.remove();
        assert_eq!((orphans.pop_stalled(at(900), nothing), orphans.len()), (None, 2));
    }

    #[test]
    fn a_crowd_that_takes_something_stays_and_is_looked_at_in_turns() {
        let mut orphans = Orphans::new(2);
        (0..500).for_each(|place| _ = added(&mut orphans, place, 0));
        let mut looks = 0;
        for turn in 1..50 {
            let left_bytes = |_, _| {
                looks += 1;
                Some(ALL - LEAST_TAKEN * turn)
            };
            assert_eq!(orphans.pop_stalled(at(100), left_bytes), None);
        }
        assert_eq!((looks, orphans.queue.len()), (49 * MOST_CHECKED, 500));
    }

    #[test]
    fn what_is_over_is_not_kept() {
        let mut orphans = Orphans::new(4);
        let oldest = added(&mut orphans, 0, 0);
        for place in 1..1_000 {
            orphans.push(place, (at(0), 0), |_, ticket| ticket == oldest);
            orphans.remove();
            assert!(orphans.queue.len() <= 10);
        }
        assert_eq!(orphans.queue.front().map(|it| (it.place, it.ticket)), Some((0, oldest)));
    }
}
