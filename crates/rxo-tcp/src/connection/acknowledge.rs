//! The content of an ACK, which is fixed when the ACK becomes due.
//!
//! The ACKs of an aggregate are sent together. Each must have the same content as if it had been
//! sent at once: the window, the echoed timestamp, SACK blocks, ECN.

use rxo_wire::SeqNumber;
use rxo_wire::tcp::SackBlocks;

use super::Connection;
use crate::receive::AckKind;
use crate::{AckPolicy, PendingAck};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Ends the processing of a segment. If the segment causes an ACK, fixes its content.
    pub(crate) fn end_segment(&mut self) {
        if let Some(is_alone) = self.acks.end_segment() {
            self.acknowledge_all(is_alone);
        }
    }

    /// Queues an ACK of everything received. The ACK is sent as a segment of its own if
    /// it has SACK blocks, or if `is_alone` is set and the ACK number repeats the last one: the peer counts
    /// duplicates with an unchanged window (RFC 5681, section 2).
    #[inline]
    pub(crate) fn acknowledge_all(&mut self, is_alone: bool) {
        if is_alone || self.rcv.has_gap() || self.rcv.sack.has_duplicate() {
            self.acknowledge_all_apart(is_alone);
        } else {
            self.acknowledge_all_plain();
        }
    }

    #[inline(never)]
    fn acknowledge_all_apart(&mut self, is_alone: bool) {
        let ack = self.rcv.nxt;
        let is_duplicate = is_alone && ack == self.timestamps.last_ack;
        if !is_duplicate {
            self.rcv.move_edge(ack);
        }
        if self.uses_sack && (self.rcv.has_gap() || self.rcv.sack.has_duplicate()) {
            let pending = self.pending_ack(ack, AckKind::Alone);
            let mut sack = self.rcv.sack_blocks();
            sack.truncate(SackBlocks::most(self.timestamps.is_agreed));
            self.acks.queue_with_sack(pending, sack);
        } else {
            let kind = match self.config.acks {
                _ if is_duplicate => AckKind::Alone,
                // Nothing follows the FIN.
                AckPolicy::OneForATurn if !self.is_peer_done() => AckKind::Filled,
                _ => AckKind::Plain,
            };
            let pending = self.pending_ack(ack, kind);
            self.acks.queue(pending);
        }
    }

    /// Queues a window update. The last pending ACK becomes the update, unless it is a duplicate:
    /// with another window it would no longer count as a duplicate.
    pub(crate) fn queue_window_update(&mut self) {
        let ack = self.rcv.nxt;
        if self.acks.may_update(ack) {
            self.rcv.move_edge(ack);
            self.acks.update(self.rcv.window_field_at(ack));
        } else {
            self.acknowledge_all(false);
        }
    }

    /// Queues a plain ACK of everything received.
    #[inline]
    pub(crate) fn acknowledge_all_plain(&mut self) {
        self.rcv.move_edge(self.rcv.nxt);
        self.queue_ack(self.rcv.nxt);
    }

    /// Queues a plain ACK of everything before `ack`, which is a former value of RCV.NXT. The
    /// ACK carries the right edge of the window at the time of that value.
    #[inline]
    pub(crate) fn queue_ack(&mut self, ack: SeqNumber) {
        let pending = self.pending_ack(ack, AckKind::Plain);
        self.acks.queue(pending);
    }

    /// Queues `count` plain ACKs, at least one. The first acknowledges everything before `ack`, and
    /// each further one `bytes` bytes more. The effect equals that of calling [`Connection::queue_ack`] once
    /// for each ACK. The caller has checked that the queue has space for all.
    #[inline]
    pub(crate) fn queue_acks(&mut self, ack: SeqNumber, bytes: u32, count: u32) {
        self.timestamps.last_ack = ack + (count - 1) * bytes;
        let (echo, has_mark) = (self.timestamps.recent(), self.ecn.echoes());
        let Self { rcv, acks, .. } = self;
        rcv.window_fields(|offer| {
            let pending = |n: u32, window| {
                let ack = ack + n * bytes;
                PendingAck { ack, echo, window, has_mark, kind: AckKind::Plain }
            };
            if offer.fits_from(ack) {
                acks.queue_each(
                    (0..count).map(|n| pending(n, offer.fitting_field_at(ack + n * bytes))),
                );
            } else {
                acks.queue_each((0..count).map(|n| pending(n, offer.field_at(ack + n * bytes))));
            }
        });
    }

    /// Returns the content of the ACK `ack`. The ACK counts as sent now (RFC 7323,
    /// section 4.3), so that echoed timestamps do not depend on aggregation.
    #[inline]
    fn pending_ack(&mut self, ack: SeqNumber, kind: AckKind) -> PendingAck {
        self.timestamps.last_ack = ack;
        let (echo, window) = (self.timestamps.recent(), self.rcv.window_field_at(ack));
        PendingAck { ack, echo, window, has_mark: self.ecn.echoes(), kind }
    }
}
