//! The fast path of an ACK that covers only data sent once, while no loss is suspected or being
//! recovered. Nearly all ACKs are of this kind.
//!
//! The effect is the same as in `on_ack.rs`, but checks whose results are known are left out. ACKs
//! that arrive together form a run: each gives a round-trip sample, and all other state is written once.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use super::Recovery;
use super::rack::Arrival;
use super::rtt::{Estimate, MOST_SAMPLE_NS};
use super::scoreboard::{RangeState, Sent};
use crate::congestion::{Acked, Congestion, Delivery};
use crate::sequence::distance;

/// A run of expected ACKs that arrive together. State that depends only on the last
/// ACK is written at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckRun {
    /// SND.UNA, the oldest unacknowledged sequence number. The first range of the scoreboard begins at the
    /// value before the run.
    una: SeqNumber,
    /// The end of the first range. If that range was retransmitted, `end` is SND.UNA, so that every ACK of the
    /// range takes the slow path.
    end: SeqNumber,
    sent_at: Instant,
    /// The number of bytes in flight.
    in_flight: u32,
}

impl AckRun {
    /// Returns SND.UNA, the oldest unacknowledged sequence number, after the ACKs processed so far.
    #[inline(always)]
    pub(crate) fn una(&self) -> SeqNumber {
        self.una
    }
}

/// A run of ACKs that each acknowledge a part of one range. Each ACK gives a sample of the round-trip time and
/// has no other effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Samples {
    /// SND.UNA: the oldest unacknowledged sequence number.
    una: SeqNumber,
    /// The sequence number after the last byte of the range.
    end: SeqNumber,
    /// The time at which the range was sent, in nanoseconds.
    sent_at_ns: u64,
    /// The upper bound of a sample in nanoseconds: the time from sending the range until now.
    most_ns: u64,
    rtt: Estimate,
}

impl Samples {
    /// Returns `true` if `ack` acknowledges new data inside the range, but not the whole range.
    #[inline(always)]
    pub(crate) fn expects(&self, ack: SeqNumber) -> bool {
        self.una.is_before(ack) && ack.is_before(self.end)
    }

    /// Processes an expected ACK whose frame arrived at `arrived_at_ns`. A time in the future
    /// counts as now.
    #[inline(always)]
    pub(crate) fn take(&mut self, arrived_at_ns: u64, ack: SeqNumber) {
        self.rtt.take(arrived_at_ns.saturating_sub(self.sent_at_ns).min(self.most_ns));
        self.una = ack;
    }
}

impl Recovery {
    /// Returns `true` if ACKs can take the fast path. Processing an expected ACK does
    /// not change the answer.
    #[inline]
    pub(crate) fn may_expect_acks(&self) -> bool {
        self.is_undisturbed() && self.suspect.is_none()
    }

    /// Begins a run of expected ACKs. Returns `None` if nothing is outstanding, if the first outstanding range
    /// was retransmitted, or if data sent after that range has already arrived.
    #[inline]
    pub(crate) fn begin_acks(&self) -> Option<AckRun> {
        let first = self.board.first_range().filter(|first| !first.was_retransmitted)?;
        let begins = self.rack.has_nothing_beyond(first.start);
        let Sent { start, end, sent_at, .. } = *first;
        begins.then(|| AckRun { una: start, end, sent_at, in_flight: self.board.in_flight() })
    }

    /// Returns `true` if all data that `ack` acknowledges was sent once. `ack` must be new and must not
    /// exceed SND.NXT.
    #[inline(always)]
    pub(crate) fn expects_ack(&self, run: &AckRun, ack: SeqNumber) -> bool {
        run.end.is_at_or_after(ack) || self.board.was_sent_once(ack)
    }

    /// Drops the record of data in flight, because the owner of the connection keeps such a record. Returns
    /// `false`, and changes nothing, if a part of the data was retransmitted.
    pub(crate) fn forget_sent(&mut self) -> bool {
        self.board.forget_sent_once()
    }

    /// Begins to take round-trip samples from the unacknowledged part of the first range of `run`. `None` if
    /// the whole range is acknowledged, or before the first round-trip sample.
    #[inline(always)]
    pub(crate) fn begin_samples(&self, run: &AckRun, now: Instant) -> Option<Samples> {
        let AckRun { una, end, sent_at, .. } = *run;
        let most_ns = now.nanos_since(sent_at).min(MOST_SAMPLE_NS);
        let sent_at_ns = sent_at.as_nanos();
        let rtt = self.rtt.estimate().filter(|_| una != end);
        rtt.map(|rtt| Samples { una, end, sent_at_ns, most_ns, rtt })
    }

    /// Applies to `run` the ACKs that `samples` has processed.
    #[inline(always)]
    pub(crate) fn end_samples(&mut self, run: &mut AckRun, samples: &Samples) {
        run.in_flight -= distance(run.una, samples.una);
        run.una = samples.una;
        self.rtt.set_estimate(samples.rtt);
    }

    /// Processes an expected ACK of `run` whose frame arrived at `arrived_at`.
    #[inline(always)]
    pub(crate) fn take_ack(
        &mut self,
        run: &mut AckRun,
        (now, arrived_at): (Instant, Instant),
        ack: SeqNumber,
        congestion: &mut Congestion,
    ) {
        let delivered = if ack.is_before(run.end) {
            let bytes = distance(run.una, ack);
            run.una = ack;
            run.in_flight -= bytes;
            (bytes, run.sent_at)
        } else {
            self.take_ranges(run, arrived_at, ack)
        };
        self.sample((now, arrived_at), ack, delivered, run.in_flight, congestion);
    }

    /// Processes an expected ACK of `run` that covers at least the first range. Returns the number
    /// of acknowledged bytes, and the latest time at which any of them was sent.
    #[inline(never)]
    fn take_ranges(
        &mut self,
        run: &mut AckRun,
        arrived_at: Instant,
        ack: SeqNumber,
    ) -> (u32, Instant) {
        let bytes = distance(run.una, ack);
        let sent_at = self.write_ranges(arrived_at, ack);
        run.in_flight = self.board.in_flight();
        (run.una, run.end) = (ack, ack);
        if let Some(first) = self.board.first_range().filter(|first| !first.was_retransmitted) {
            (run.end, run.sent_at) = (first.end, first.sent_at);
        }
        (bytes, sent_at)
    }

    /// Removes the ranges that `ack` acknowledges. The frame of this ACK arrived at `arrived_at`.
    /// Returns the time at which the latest of them was sent.
    #[inline]
    fn write_ranges(&mut self, arrived_at: Instant, ack: SeqNumber) -> Instant {
        // RACK reads the other fields only for retransmitted ranges.
        let arrival = Arrival { at: arrived_at, echoed: None, least_rtt: Duration::ZERO };
        let Self { board, rack, .. } = self;
        let mut sent_at = Instant::ZERO;
        board.acknowledge_in_flight(ack, |range| {
            sent_at = sent_at.max(range.sent_at);
            rack.delivered(range, &arrival);
        });
        sent_at
    }

    /// Ends `run`, whose last ACK arrived at `arrived_at`, and writes the state that depends on
    /// it.
    #[inline(always)]
    pub(crate) fn end_acks(&mut self, run: &AckRun, arrived_at: Instant) {
        if self.board.first().is_some_and(|start| start.is_before(run.una())) {
            self.write_ranges(arrived_at, run.una());
        }
        self.apply_acknowledged(run.una());
    }

    /// Processes an ACK of `start` to `ack` that a dormant connection expects. The group provides
    /// the time of the last send and SND.NXT.
    pub(crate) fn on_dormant_ack(
        &mut self,
        (now, arrived_at): (Instant, Instant),
        (start, ack): (SeqNumber, SeqNumber),
        (sent_at, nxt): (Instant, SeqNumber),
        congestion: &mut Congestion,
    ) {
        let arrival = Arrival { at: arrived_at, echoed: None, least_rtt: Duration::ZERO };
        let state = RangeState::InFlight;
        let range = Sent { start, end: ack, sent_at, was_retransmitted: false, state };
        self.rack.delivered(&range, &arrival);
        let delivered = (range.bytes(), sent_at);
        self.sample((now, arrived_at), ack, delivered, distance(ack, nxt), congestion);
        self.apply_acknowledged(ack);
    }

    /// Applies the common effects of all expected ACKs up to `ack`.
    #[inline]
    fn apply_acknowledged(&mut self, ack: SeqNumber) {
        self.rack.acknowledged(ack);
        self.probe.is_due = false;
        self.duplicates.reset();
    }

    /// Passes the measurements of an ACK to the round-trip estimate and to congestion control: the
    /// ACK covers `bytes` bytes, and `in_flight` bytes are in flight after it.
    #[inline(always)]
    fn sample(
        &mut self,
        (now, arrived_at): (Instant, Instant),
        ack: SeqNumber,
        (bytes, sent_at): (u32, Instant),
        in_flight: u32,
        congestion: &mut Congestion,
    ) {
        let sample_ns = arrived_at.nanos_since(sent_at);
        self.rtt.sample_ns(sample_ns);
        if congestion.is_limiting {
            congestion.on_ack(&Acked {
                now,
                bytes,
                rtt: self.rtt.smoothed().unwrap_or_default(),
                ack,
                nxt: ack + in_flight,
                sample_ns: Some(sample_ns),
                after_timeout: false,
            });
        }
        congestion.on_delivered(|| Delivery {
            now: arrived_at,
            bytes,
            sent_at: Some(sent_at),
            rtt_ns: Some(sample_ns),
            in_flight: (in_flight.saturating_add(bytes), in_flight),
            shows_loss: false,
            is_recovering: false,
        });
    }
}
