//! Delivers pure ACKs of the fast path: to the connection, or to the ring while an application holds the cell's
//! lock.

use std::sync::atomic::{Ordering, fence};

use rxo_frame::Instant;
use rxo_tcp::{Arrival, Connection, Segment};
use rxo_wire::tcp::AckRecord;

use super::ack_ring::{AckTerms, ENTRIES, Pushed};
use super::{ArrivalOutcome, Cell};
use crate::buffer::Buffer;
use crate::fast::Records;

/// The outcome for one connection's ACKs of a batch, if its cell was locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitingAcks {
    pub(crate) given: ArrivalOutcome,
    /// Number of ACKs that were put into the ring.
    pub(crate) pushed: u64,
    /// Number of ACKs that were overwritten in the ring.
    pub(crate) overwritten: u64,
    /// Maximum number of ACKs that the ring held at once.
    pub(crate) most: u32,
    /// Number of ACKs that the ring refused and that were put into the backlog instead.
    pub(crate) refused: u64,
}

impl<B: AsRef<[u8]>> Cell<B> {
    /// Passes pure ACKs to the connection in one call. If an application holds the lock, puts them into the
    /// ring and returns the outcome; otherwise returns `None`.
    #[inline]
    pub(crate) fn on_acks(
        &self,
        now: Instant,
        records: Records<'_>,
        terms: AckTerms,
    ) -> Option<WaitingAcks> {
        let Some(mut inner) = self.try_lock() else {
            return Some(self.defer_acks(now, records.flatten().copied(), terms));
        };
        if self.run_backlog(&mut inner) {
            // The data is passed on at once, as for every received segment: until the cell is served, the
            // data would occupy the device's buffers.
            Self::read_out(&mut inner);
        }
        // Usually one iteration.
        for stretch in records {
            inner.connection.on_pure_acks(now, stretch);
        }
        None
    }

    /// Returns `true` if segments wait in the backlog. Only the worker adds segments to the backlog; other
    /// threads only remove them.
    #[inline]
    pub(crate) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    #[cold]
    fn defer_acks(
        &self,
        now: Instant,
        records: impl Iterator<Item = AckRecord>,
        terms: AckTerms,
    ) -> WaitingAcks {
        let given = ArrivalOutcome::Waits;
        let mut outcome = WaitingAcks { given, pushed: 0, overwritten: 0, most: 0, refused: 0 };
        for record in records {
            let pushed = match self.backlog.is_empty() {
                true => self.ring.push(now, record, terms),
                false => Pushed::Refused,
            };
            outcome.note(pushed);
            // Falls back to the backlog. The backlog is then not empty, so the ACKs that follow are also put
            // there and stay in order.
            if pushed == Pushed::Refused
                && !self.backlog.push(now, std::iter::once(Segment::from(&record)), false)
            {
                outcome.given = ArrivalOutcome::Dropped;
            }
        }
        // Pairs with the fence in `Cell::leave`: either this thread gets the lock, or its owner sees the
        // records.
        fence(Ordering::SeqCst);
        if let Some(mut inner) = self.try_lock() {
            self.run_backlog(&mut inner);
            if outcome.given == ArrivalOutcome::Waits {
                outcome.given = ArrivalOutcome::Taken;
            }
        }
        outcome
    }

    /// Passes the ACKs in the ring to the connection. Returns `true` if there were any. Only the owner of the
    /// cell's lock may call it.
    pub(super) fn run_ring(&self, connection: &mut Connection<Buffer<B>>) -> bool {
        let mut has_run = false;
        while let Some((now, record)) = self.ring.pop() {
            connection.on_arrival(now, Arrival::acks([record]));
            has_run = true;
        }
        has_run
    }
}

impl WaitingAcks {
    fn note(&mut self, pushed: Pushed) {
        match pushed {
            Pushed::Waits(waiting) => {
                self.pushed += 1;
                self.most = self.most.max(waiting);
            }
            Pushed::Overwrote => {
                self.pushed += 1;
                self.overwritten += 1;
                self.most = ENTRIES;
            }
            Pushed::Refused => self.refused += 1,
        }
    }
}
