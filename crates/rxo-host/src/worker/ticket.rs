//! Tickets: numbers that tell the entries of a queue apart, although the indices to which they refer are
//! reused.

use std::num::NonZeroU64;

/// A number that is issued only once. `Option<Ticket>` takes no more memory than a ticket; each connection
/// has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(NonZeroU64);

/// Issues [`Ticket`]s: numbers that are each used once, so that a queue entry can be told from another for
/// the same index.
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
