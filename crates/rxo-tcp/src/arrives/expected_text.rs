//! Text that is just what comes next, taken in one go (header prediction; Jacobson 1990).
//!
//! Nearly all text is. It says "yes" only where each numbered step of this folder would let the
//! segment through and do nothing but what is done here; everything else takes the steps. The
//! property tests hold the two against each other.

use rxo_frame::Instant;
use rxo_wire::tcp::Timestamp;
use rxo_wire::{SeqNumber, TcpFlags};

use crate::plain::PlainSegment;
use crate::segment::{Ecn, Payload};
use crate::{AckPolicy, Connection, Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes an aggregate of plain segments, in order: the same as [`Connection::on_aggregate`] with
    /// them, and faster.
    #[inline(never)]
    pub fn on_run(&mut self, now: Instant, segments: impl IntoIterator<Item = PlainSegment<B>>) {
        let owed_before = self.acks.count_owed();
        let mut may_expect = self.may_expect_text();
        let mut is_heard = false;
        for segment in segments {
            // Taken apart at once, so that its fields can stay in registers.
            let PlainSegment { seq, ack, flags, window, timestamp, payload, ecn, arrived_at } =
                segment;
            let header = Header { seq, ack, flags, window, timestamp, ecn };
            if may_expect && self.expects_text(header, payload.bytes()) {
                self.take_expected_header(now, header);
                if !is_heard {
                    // Each would say so; nothing else that is expected changes it.
                    self.heard_of_peer(now);
                    is_heard = true;
                }
                self.take_expected_text(payload);
            } else {
                let odd =
                    PlainSegment { seq, ack, flags, window, timestamp, payload, ecn, arrived_at };
                self.arrive(now, odd.into());
                may_expect = self.may_expect_text();
            }
        }
        if self.config.acks == AckPolicy::OneForAnAggregate {
            self.acks.stretch(owed_before);
        }
        self.settle(now);
    }

    /// Whether text can be expected at all: what no expected segment changes. Established, so that
    /// the steps for other states do nothing; nothing is missing or was twice here, so that each
    /// second segment owes an acknowledgement; no FIN has come; nothing is being recovered, so that an
    /// acknowledgement of nothing new says nothing.
    fn may_expect_text(&self) -> bool {
        self.state == State::Established
            && !self.is_abandoned
            && !self.rcv.has_gap()
            && !self.rcv.sack.has_duplicate()
            && self.rcv.fin_at.is_none()
            && self.recovery.is_calm()
    }

    /// Whether a segment with `bytes` of text is what comes next: in order and inside the window, with
    /// a timestamp that is not old, acknowledging nothing new, with nothing to say about congestion.
    #[inline(always)]
    fn expects_text(&self, header: Header, bytes: u32) -> bool {
        let is_plain = header.flags.without(TcpFlags::PSH) == TcpFlags::ACK;
        let is_next = header.seq == self.rcv.nxt && header.ack == self.snd.una;
        is_plain
            && is_next
            && header.ecn != Ecn::Congestion
            && bytes <= self.rcv.wnd()
            && self.rcv.has_room()
            && self.timestamps.expects(header.timestamp)
    }

    /// The first and the fifth step.
    #[inline(always)]
    fn take_expected_header(&mut self, now: Instant, header: Header) {
        let Header { seq, ack, window, timestamp, .. } = header;
        if let Some(timestamp) = timestamp.filter(|_| self.timestamps.is_agreed) {
            self.timestamps.remember(timestamp.value, seq, now);
        }
        self.snd.update_window(seq, ack, u32::from(window) << self.snd.scale);
    }

    /// The seventh step.
    #[inline(always)]
    fn take_expected_text(&mut self, payload: Payload<B>) {
        let bytes = payload.bytes();
        self.rcv.append_expected(payload);
        self.events |= Events::READABLE;
        self.acks.count(bytes, self.rcv.full_segment(), self.rcv.nxt);
        self.note_owed();
    }
}

/// What a header says.
#[derive(Clone, Copy)]
struct Header {
    seq: SeqNumber,
    ack: SeqNumber,
    flags: TcpFlags,
    window: u16,
    timestamp: Option<Timestamp>,
    ecn: Ecn,
}
