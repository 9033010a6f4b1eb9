//! Pure ACKs that acknowledge something new and say nothing else, many in one pass.
//!
//! As in `expected_text.rs`, an ACK takes the fast path only if the steps would do nothing but what is done
//! here. Each ACK is counted by itself (round trip, congestion window, the peer's window). The timers, for
//! which the last ACK decides, are set once, and the send buffer is freed once.

use rxo_frame::Instant;
use rxo_wire::tcp::{AckRecord, Timestamp};
use rxo_wire::{SeqNumber, TcpFlags};

use crate::segment::{Ecn, Segment};
use crate::{Connection, Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes pure ACKs by their records, each counted by itself.
    pub(super) fn take_acks(&mut self, now: Instant, records: impl Iterator<Item = AckRecord>) {
        let mut may_expect = self.may_expect_acks();
        let mut acked_from = None;
        for record in records {
            if may_expect && self.expects_ack(record) {
                acked_from = acked_from.or(Some(self.snd.una));
                self.take_expected_ack(now, record);
            } else {
                self.finish_expected_acks(now, acked_from.take());
                self.take_segment(now, Segment::from(&record));
                may_expect = self.may_expect_acks();
            }
            if self.is_window_closed() {
                // The next ACK may open it, and then the timers begin anew.
                self.finish_expected_acks(now, acked_from.take());
                self.update_timers(now);
            }
        }
        self.finish_expected_acks(now, acked_from);
    }

    /// Whether the connection can take the fast path for pure ACKs at all. No expected ACK changes that.
    pub(crate) fn may_expect_acks(&self) -> bool {
        self.state == State::Established
            && self.rcv.fin_at.is_none()
            && self.recovery.may_expect_acks()
    }

    /// Whether the ACK acknowledges new data, without a congestion mark, and with a timestamp that is not
    /// old.
    #[inline(always)]
    fn expects_ack(&self, record: AckRecord) -> bool {
        let is_new = self.snd.una.is_before(record.ack) && !self.snd.nxt.is_before(record.ack);
        is_new && self.is_plain_ack(&record) && self.recovery.expects_ack(record.ack)
    }

    /// Whether the ACK has no congestion mark, the expected sequence number, and a timestamp that is not old.
    #[inline(always)]
    pub(crate) fn is_plain_ack(&self, record: &AckRecord) -> bool {
        let is_plain = record.flags == TcpFlags::ACK && record.ecn != Ecn::Congestion.bits();
        is_plain && record.seq == self.rcv.nxt && self.timestamps.expects(timestamp(record))
    }

    #[inline(always)]
    fn take_expected_ack(&mut self, now: Instant, record: AckRecord) {
        let arrived_at = Instant::from_nanos(record.arrived_at_ns).min(now);
        self.recovery.on_expected_ack(now, arrived_at, record.ack, &mut self.congestion);
        self.note_expected_ack(now, &record);
    }

    /// Takes the fields of an expected ACK, but for what it says of the path.
    #[inline(always)]
    pub(crate) fn note_expected_ack(&mut self, now: Instant, record: &AckRecord) {
        let AckRecord { seq, ack, window, .. } = *record;
        // First.
        if let Some(timestamp) = timestamp(record).filter(|_| self.timestamps.is_agreed) {
            self.timestamps.remember(timestamp, seq, now);
        }
        // Fifth.
        self.snd.una = ack;
        self.follow_path();
        self.snd.update_window(seq, ack, u32::from(window) << self.snd.scale);
    }

    /// Ends a run of expected ACKs. Before the run, SND.UNA was `acked_from`. We have not sent a FIN.
    fn finish_expected_acks(&mut self, now: Instant, acked_from: Option<SeqNumber>) {
        if let Some(from) = acked_from {
            self.snd.free(from, self.snd.una);
            self.events |= Events::WRITABLE;
            self.made_progress(now);
            self.heard_of_peer(now);
        }
    }
}

#[inline(always)]
fn timestamp(record: &AckRecord) -> Option<Timestamp> {
    let timestamp = Timestamp { value: record.ts_value, echo: record.ts_echo };
    record.has_timestamp.then_some(timestamp)
}
