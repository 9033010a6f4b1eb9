//! The fast path for pure ACKs: many ACKs that acknowledge new data and change nothing else, in one pass.
//!
//! As in `expected_text.rs`, an ACK takes the fast path only if the numbered steps would have exactly the same
//! effect. Each ACK counts separately for the round-trip time and the congestion window. The effects of the
//! last ACK are applied once: the scoreboard, the peer's window, the timestamp, the timers, and freeing the
//! send buffer.

use rxo_frame::Instant;
use rxo_wire::tcp::{AckRecord, Timestamp};
use rxo_wire::{SeqNumber, TcpFlags};

use super::ack_records::{AckRecords, Ahead, SampleRun, shape};
use crate::recovery::AckRun;
use crate::segment::{Ecn, Segment};
use crate::{Connection, Events, State};

/// A run of expected ACKs that arrived together.
struct Run {
    /// The state of loss recovery during the run, including SND.UNA.
    acks: AckRun,
    /// SND.UNA, the oldest unacknowledged sequence number, before the run.
    from: SeqNumber,
    noted: Noted,
}

/// The window and timestamp fields of the ACKs that a run has processed so far.
#[derive(Clone, Copy)]
struct Noted {
    /// TS.Recent, the peer's timestamp to echo; `None` if timestamps are not in use.
    recent: Option<u32>,
    /// `true` if the timestamps of the run's ACKs update TS.Recent.
    covers: bool,
    /// The largest window field (SEG.WND) of the run so far, unscaled.
    largest_window: u16,
    /// The window field (SEG.WND) of the last ACK, unscaled.
    window: u16,
    /// TSecr of the last ACK.
    echo: u32,
    /// The arrival time of the last ACK.
    arrived_at: Instant,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Processes pure ACKs from their records, each ACK separately.
    pub(super) fn take_acks(&mut self, now: Instant, mut records: impl AckRecords) {
        let mut next = records.next();
        while let Some(record) = next {
            next = self.take_expected_acks(now, record, &mut records);
            if let Some(record) = next {
                self.take_segment(now, Segment::from(&record));
                next = records.next();
            }
        }
    }

    /// Processes one pure ACK. The effect equals that of [`Connection::take_acks`] with one record.
    #[inline(always)]
    pub(super) fn take_only_ack(&mut self, now: Instant, record: &AckRecord) {
        let run = self.begin_expected_acks(now);
        let Some(mut run) = run.filter(|run| self.expects_ack(run, record)) else {
            return self.take_segment(now, Segment::from(record));
        };
        self.take_expected_ack(&mut run, now, record);
        self.end_expected_acks(now, &run);
    }

    /// Processes `record` and the records after it while they are expected. Returns the first record that is
    /// not expected; `None` if all are.
    #[inline(always)]
    fn take_expected_acks(
        &mut self,
        now: Instant,
        record: AckRecord,
        records: &mut impl AckRecords,
    ) -> Option<AckRecord> {
        let mut next = Some(record);
        let Some(mut run) = self.begin_expected_acks(now) else { return next };
        while let Some(record) = next.filter(|record| self.expects_ack(&run, record)) {
            self.take_expected_ack(&mut run, now, &record);
            next = self.take_samples(&mut run, now, shape(&record), records);
        }
        if run.acks.una() != run.from {
            self.end_expected_acks(now, &run);
        }
        next
    }

    /// Returns `true` if the connection can take the fast path for pure ACKs. The result stays the same after
    /// an expected ACK is processed.
    pub(crate) fn may_expect_acks(&self) -> bool {
        self.state == State::Established
            && self.rcv.fin_at().is_none()
            && self.recovery.may_expect_acks()
    }

    /// Begins a run of expected ACKs. Returns `None` if the connection cannot take the fast path now.
    #[inline(always)]
    fn begin_expected_acks(&self, now: Instant) -> Option<Run> {
        // While path MTU discovery is active, an ACK may change the segment size, which affects the next ACK.
        if !self.may_expect_acks() || self.is_window_closed() || self.path.is_watching() {
            return None;
        }
        Some(Run {
            acks: self.recovery.begin_acks()?,
            from: self.snd.una,
            noted: Noted {
                recent: self.timestamps.is_agreed.then(|| self.timestamps.recent()),
                covers: self.timestamps.covers(self.rcv.nxt),
                largest_window: 0,
                window: 0,
                echo: 0,
                arrived_at: now,
            },
        })
    }

    /// Returns `true` if the ACK acknowledges new data, has no congestion mark and no old timestamp, and
    /// leaves the window open.
    #[inline(always)]
    fn expects_ack(&self, run: &Run, record: &AckRecord) -> bool {
        let is_new = run.acks.una().is_before(record.ack) && !self.snd.nxt.is_before(record.ack);
        is_new
            && run.noted.is_only_ack(record)
            && record.seq == self.rcv.nxt
            && self.recovery.expects_ack(&run.acks, record.ack)
    }

    /// Returns `true` if the ACK has no congestion mark, the expected sequence number, and no old timestamp.
    #[inline(always)]
    pub(crate) fn is_plain_ack(&self, record: &AckRecord) -> bool {
        has_only_ack(record)
            && record.seq == self.rcv.nxt
            && self.timestamps.expects(timestamp(record))
    }

    #[inline(always)]
    fn take_expected_ack(&mut self, run: &mut Run, now: Instant, record: &AckRecord) {
        run.noted.note(now, record);
        let at = (now, run.noted.arrived_at);
        self.recovery.take_ack(&mut run.acks, at, record.ack, &mut self.congestion);
    }

    /// Processes expected ACKs as long as each acknowledges a part of the first sent range and has the given
    /// `shape`. Such an ACK only gives a round-trip sample. Processes no ACK if congestion control needs each
    /// ACK separately. Returns the first ACK that was not processed.
    #[inline(always)]
    fn take_samples(
        &mut self,
        run: &mut Run,
        now: Instant,
        shape: u32,
        records: &mut impl AckRecords,
    ) -> Option<AckRecord> {
        let Noted { recent, covers, largest_window, window, echo, arrived_at } = run.noted;
        let first = match records.look_ahead() {
            Ahead::Nothing => return None,
            Ahead::Some => None,
            Ahead::Taken(record) => Some(record),
        };
        if self.congestion.asks_for_each() || recent.is_some() && !covers {
            return first.or_else(|| records.next());
        }
        let Some(samples) = self.recovery.begin_samples(&run.acks, now) else {
            return first.or_else(|| records.next());
        };
        let mut taken = SampleRun {
            samples,
            seq: self.rcv.nxt,
            shape,
            recent: recent.unwrap_or_default(),
            largest_window,
            window,
            echo,
            arrived_at_ns: arrived_at.as_nanos(),
        };
        let next = match recent {
            Some(_) => records.take_samples::<true>(first, &mut taken),
            None => records.take_samples::<false>(first, &mut taken),
        };
        self.recovery.end_samples(&mut run.acks, &taken.samples);
        let SampleRun { largest_window, window, echo, arrived_at_ns, .. } = taken;
        run.noted = Noted {
            recent: recent.map(|_| taken.recent),
            covers,
            largest_window,
            window,
            echo,
            arrived_at: Instant::from_nanos(arrived_at_ns).min(now),
        };
        next
    }

    /// Applies the fields of an expected ACK to the connection, without loss recovery.
    #[inline(always)]
    pub(crate) fn note_expected_ack(&mut self, now: Instant, record: &AckRecord) {
        let AckRecord { seq, ack, window, .. } = *record;
        // The first step: the timestamp.
        if let Some(timestamp) = timestamp(record).filter(|_| self.timestamps.is_agreed) {
            self.timestamps.remember(timestamp, seq, now);
        }
        // The fifth step: the ACK field.
        self.snd.una = ack;
        self.follow_path();
        self.snd.update_window(seq, ack, u32::from(window) << self.snd.scale);
    }

    /// Ends a run of at least one ACK: applies the effects of its last ACK. This side must not have sent a
    /// FIN.
    #[inline(always)]
    fn end_expected_acks(&mut self, now: Instant, run: &Run) {
        let noted = &run.noted;
        self.recovery.end_acks(&run.acks, noted.arrived_at);
        // The first step. The timestamps of a run never decrease.
        if let Some(value) = noted.recent.filter(|_| noted.covers) {
            self.timestamps.record(Timestamp { value, echo: noted.echo }, now);
        }
        // The fifth step.
        let [window, largest] =
            [noted.window, noted.largest_window].map(|window| u32::from(window) << self.snd.scale);
        self.snd.una = run.acks.una();
        self.snd.update_window(self.rcv.nxt, self.snd.una, window);
        self.snd.max_wnd = self.snd.max_wnd.max(largest);
        self.snd.free(run.from, self.snd.una);
        self.events |= Events::WRITABLE;
        self.made_progress(now);
        self.restart_keep_alive(now);
    }
}

impl Noted {
    /// Returns `true` if the ACK has no congestion mark, a nonzero window, and, if timestamps are in use, a
    /// timestamp that is not old.
    #[inline(always)]
    fn is_only_ack(&self, record: &AckRecord) -> bool {
        let is_timely = self.recent.is_none_or(|recent| {
            record.has_timestamp && record.ts_value.wrapping_sub(recent) as i32 >= 0
        });
        is_timely && record.window != 0 && has_only_ack(record)
    }

    /// Records the window, the timestamp and the arrival time of the next ACK of the run.
    #[inline(always)]
    fn note(&mut self, now: Instant, record: &AckRecord) {
        self.arrived_at = Instant::from_nanos(record.arrived_at_ns).min(now);
        if let Some(recent) = self.recent.as_mut().filter(|_| self.covers) {
            *recent = record.ts_value;
        }
        (self.window, self.echo) = (record.window, record.ts_echo);
        self.largest_window = self.largest_window.max(record.window);
    }
}

#[inline(always)]
fn has_only_ack(record: &AckRecord) -> bool {
    record.flags == TcpFlags::ACK && record.ecn != Ecn::Congestion.bits()
}

#[inline(always)]
fn timestamp(record: &AckRecord) -> Option<Timestamp> {
    let timestamp = Timestamp { value: record.ts_value, echo: record.ts_echo };
    record.has_timestamp.then_some(timestamp)
}
