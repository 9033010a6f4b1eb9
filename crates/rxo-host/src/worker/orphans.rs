//! Orphans: connections without an application that are not closed.
//!
//! Separate because it is only a queue and a count. A connection limits how long it lasts; this limits how
//! many orphans there are at once, whatever their peers do.

use std::collections::VecDeque;

use super::ticket::{Ticket, Tickets};

/// The queue of orphans, the oldest at the front.
#[derive(Debug)]
pub(super) struct Orphans {
    limit: usize,
    /// Places and tickets. Those of closed connections stay for a while.
    queue: VecDeque<(u32, Ticket)>,
    live: usize,
    tickets: Tickets,
}

impl Orphans {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, queue: VecDeque::new(), live: 0, tickets: Tickets::new() }
    }

    /// How many orphans there are.
    pub(super) const fn len(&self) -> usize {
        self.live
    }

    /// Adds the connection at `place`, and returns its ticket. `is_live` says whether a ticket is still that of
    /// its place.
    pub(super) fn push(&mut self, place: u32, is_live: impl Fn(u32, Ticket) -> bool) -> Ticket {
        while self.queue.front().is_some_and(|(place, ticket)| !is_live(*place, *ticket)) {
            self.queue.pop_front();
        }
        if self.queue.len() > 2 * self.limit {
            self.queue.retain(|(place, ticket)| is_live(*place, *ticket));
        }
        let ticket = self.tickets.next();
        self.queue.push_back((place, ticket));
        self.live += 1;
        ticket
    }

    /// Counts the end of an orphan.
    pub(super) fn remove(&mut self) {
        self.live -= 1;
    }

    /// The oldest orphan if there are too many. It may be closed already.
    pub(super) fn pop_excess(&mut self) -> Option<(u32, Ticket)> {
        if self.live > self.limit { self.queue.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dropped_gives_way() {
        let mut orphans = Orphans::new(2);
        let all = |_, _| true;
        let first = orphans.push(7, all);
        orphans.push(8, all);
        assert_eq!(orphans.pop_excess(), None);
        orphans.push(9, all);
        assert_eq!(orphans.pop_excess(), Some((7, first)));
        orphans.remove();
        assert_eq!((orphans.pop_excess(), orphans.len()), (None, 2));
    }

    #[test]
    fn what_is_over_is_not_kept() {
        let mut orphans = Orphans::new(4);
        let oldest = orphans.push(0, |_, _| true);
        for place in 1..1_000 {
            orphans.push(place, |_, ticket| ticket == oldest);
            orphans.remove();
            assert!(orphans.queue.len() <= 10);
        }
        assert_eq!(orphans.queue.front(), Some(&(0, oldest)));
    }
}
