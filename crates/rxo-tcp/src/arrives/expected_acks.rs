//! Pure ACKs that acknowledge something new and say nothing else, many in one pass.
//!
//! As in `expected_text.rs`, an ACK takes the fast path only if the steps would do nothing but what is done
//! here. Each ACK is counted by itself (round trip, congestion window). What the last ACK decides is done once:
//! the scoreboard, the peer's window, the timestamp, the timers, and freeing the send buffer.

use rxo_frame::Instant;
use rxo_wire::tcp::{AckRecord, Timestamp};
use rxo_wire::{SeqNumber, TcpFlags};

use super::ack_records::{AckRecords, Ahead, SampleRun, shape};
use crate::recovery::AckRun;
use crate::segment::{Ecn, Segment};
use crate::{Connection, Events, State};

/// Expected ACKs that come together.
struct Run {
    /// What recovery knows, SND.UNA among it.
    acks: AckRun,
    /// SND.UNA before the run.
    from: SeqNumber,
    noted: Noted,
}

/// What the ACKs of a run say beside their numbers, as far as it decides something.
#[derive(Clone, Copy)]
struct Noted {
    /// TS.Recent, if timestamps are agreed on.
    recent: Option<u32>,
    /// Whether the timestamp of an ACK is recorded.
    covers: bool,
    /// The largest SEG.WND.
    largest_window: u16,
    /// Of the last ACK: SEG.WND, TSecr, and when its frame arrived.
    window: u16,
    echo: u32,
    arrived_at: Instant,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes pure ACKs by their records, each counted by itself.
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

    /// [`Connection::take_acks`] of one ACK.
    #[inline(always)]
    pub(super) fn take_only_ack(&mut self, now: Instant, record: &AckRecord) {
        let run = self.begin_expected_acks(now);
        let Some(mut run) = run.filter(|run| self.expects_ack(run, record)) else {
            return self.take_segment(now, Segment::from(record));
        };
        self.take_expected_ack(&mut run, now, record);
        self.end_expected_acks(now, &run);
    }

    /// Takes `record` and those that follow, as far as they are expected. Returns the first that is not.
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

    /// Whether the connection can take the fast path for pure ACKs at all. No expected ACK changes that.
    pub(crate) fn may_expect_acks(&self) -> bool {
        self.state == State::Established
            && self.rcv.fin_at.is_none()
            && self.recovery.may_expect_acks()
    }

    /// Begins a run, if the connection can take the fast path now.
    #[inline(always)]
    fn begin_expected_acks(&self, now: Instant) -> Option<Run> {
        // What an ACK says of the path may change the size of segments, which the next depends on.
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

    /// Whether the ACK acknowledges new data, without a congestion mark, with a timestamp that is not old, and leaves the
    /// window open.
    #[inline(always)]
    fn expects_ack(&self, run: &Run, record: &AckRecord) -> bool {
        let is_new = run.acks.una().is_before(record.ack) && !self.snd.nxt.is_before(record.ack);
        is_new
            && run.noted.is_only_ack(record)
            && record.seq == self.rcv.nxt
            && self.recovery.expects_ack(&run.acks, record.ack)
    }

    /// Whether the ACK has no congestion mark, the expected sequence number, and a timestamp that is not old.
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

    /// Takes expected ACKs for as long as each acknowledges a part of the first range, has the `shape` of the one before, and
    /// congestion control asks for none: then each is a sample of the round trip and no more. Returns the first ACK that is
    /// something else.
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

    /// Ends a run of at least one ACK. We have not sent a FIN.
    #[inline(always)]
    fn end_expected_acks(&mut self, now: Instant, run: &Run) {
        let noted = &run.noted;
        self.recovery.end_acks(&run.acks, noted.arrived_at);
        // First. Each was not older than the one before.
        if let Some(value) = noted.recent.filter(|_| noted.covers) {
            self.timestamps.record(Timestamp { value, echo: noted.echo }, now);
        }
        // Fifth.
        let [window, largest] =
            [noted.window, noted.largest_window].map(|window| u32::from(window) << self.snd.scale);
        self.snd.una = run.acks.una();
        self.snd.update_window(self.rcv.nxt, self.snd.una, window);
        self.snd.max_wnd = self.snd.max_wnd.max(largest);
        self.snd.free(run.from, self.snd.una);
        self.events |= Events::WRITABLE;
        self.made_progress(now);
        self.heard_of_peer(now);
    }
}

impl Noted {
    /// Whether the ACK has no congestion mark, leaves the window open, and has a timestamp that is not old if there is to
    /// be one.
    #[inline(always)]
    fn is_only_ack(&self, record: &AckRecord) -> bool {
        let is_timely = self.recent.is_none_or(|recent| {
            record.has_timestamp && record.ts_value.wrapping_sub(recent) as i32 >= 0
        });
        is_timely && record.window != 0 && has_only_ack(record)
    }

    /// Takes note of the next ACK of the run.
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
