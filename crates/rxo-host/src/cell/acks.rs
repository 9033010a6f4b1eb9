//! Pure ACKs of the fast path: to the connection, or into the ring.

use std::sync::atomic::{Ordering, fence};

use rxo_frame::Instant;
use rxo_tcp::{Arrival, Connection, Segment};
use rxo_wire::tcp::AckRecord;

use super::ack_ring::{AckTerms, ENTRIES, Pushed};
use super::{Cell, Given};
use crate::buffer::Buffer;
use crate::fast::Records;

/// What became of the ACKs of one connection in a batch that found the cell locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitingAcks {
    pub(crate) given: Given,
    /// ACKs that were put into the ring.
    pub(crate) pushed: u64,
    /// ACKs that were overwritten there.
    pub(crate) overwritten: u64,
    /// The most that waited there.
    pub(crate) most: u32,
    /// ACKs that went to the backlog.
    pub(crate) refused: u64,
}

impl<B: AsRef<[u8]>> Cell<B> {
    /// Gives pure ACKs to the connection in one call, or to the ring if an application holds the lock: then says what became
    /// of them.
    #[inline]
    pub(crate) fn on_acks(
        &self,
        now: Instant,
        records: Records<'_>,
        terms: AckTerms,
    ) -> Option<WaitingAcks> {
        let Some(mut inner) = self.try_lock() else {
            return Some(self.put_off_acks(now, records.flatten().copied(), terms));
        };
        if self.run_backlog(&mut inner) {
            // As with every arrival: until the cell is served, the text would fill the device.
            Self::read_out(&mut inner);
        }
        // Most often it is one.
        for stretch in records {
            inner.connection.on_pure_acks(now, stretch);
        }
        None
    }

    /// Whether segments wait in the backlog. It stays as it is while the worker gives nothing, or becomes empty.
    #[inline]
    pub(crate) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    #[cold]
    fn put_off_acks(
        &self,
        now: Instant,
        records: impl Iterator<Item = AckRecord>,
        terms: AckTerms,
    ) -> WaitingAcks {
        let given = Given::Waits;
        let mut outcome = WaitingAcks { given, pushed: 0, overwritten: 0, most: 0, refused: 0 };
        for record in records {
            let pushed = match self.backlog.is_empty() {
                true => self.ring.push(now, record, terms),
                false => Pushed::Refused,
            };
            outcome.note(pushed);
            // The ordinary way; the ACKs behind it go there too.
            if pushed == Pushed::Refused
                && !self.backlog.push(now, std::iter::once(Segment::from(&record)), false)
            {
                outcome.given = Given::Dropped;
            }
        }
        fence(Ordering::SeqCst);
        if let Some(mut inner) = self.try_lock() {
            self.run_backlog(&mut inner);
            if outcome.given == Given::Waits {
                outcome.given = Given::Taken;
            }
        }
        outcome
    }

    /// Gives the ACKs in the ring to the connection. Returns whether there were some. Only the owner of the cell's
    /// lock calls it.
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
