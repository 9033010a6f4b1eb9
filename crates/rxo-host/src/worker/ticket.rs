//! Tickets: unique numbers that distinguish the entries of a queue, although the indices in the entries are
//! reused.

use std::num::NonZeroU64;

/// A number that is issued only once. `Option<Ticket>` takes no more memory than a ticket, which matters
/// because each connection has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(NonZeroU64);

/// Issues [`Ticket`]s. Each number is used once, so that queue entries for the same index can be
/// distinguished.
#[derive(Debug)]
pub(crate) struct Tickets {
    next: NonZeroU64,
}

impl Tickets {
    pub(crate) const fn new() -> Self {
        Self { next: NonZeroU64::MIN }
    }

    pub(crate) fn next(&mut self) -> Ticket {
        let ticket = Ticket(self.next);
        self.next = self.next.saturating_add(1);
        ticket
    }
}
