//! The fast path of an acknowledgement: it covers only data that was sent once, while nothing is lost or being
//! recovered. Nearly all acknowledgements are such.
//!
//! The result is that of `on_ack.rs`, without the checks whose results are known. Acknowledgements that come together are
//! a run: each is a sample of the path, and the rest is written once.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use super::Recovery;
use super::rack::Arrival;
use super::rtt::{Estimate, MOST_SAMPLE_NS};
use super::scoreboard::{Fate, Sent};
use crate::congestion::{Acked, Congestion, Delivery};
use crate::sequence::distance;

/// A run of expected acknowledgements that come together. What only the last of them decides is written at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckRun {
    /// SND.UNA. In the scoreboard the first range begins where it began before.
    una: SeqNumber,
    /// The end of the first range, and when it was sent. It was sent once, or nothing of it is expected: then it ends at
    /// SND.UNA.
    end: SeqNumber,
    sent_at: Instant,
    /// What is in flight, in bytes.
    in_flight: u32,
}

impl AckRun {
    /// SND.UNA.
    #[inline(always)]
    pub(crate) fn una(&self) -> SeqNumber {
        self.una
    }
}

/// Acknowledgements of parts of the first range of a run. Each is a sample of the round trip and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Samples {
    /// SND.UNA.
    una: SeqNumber,
    /// The end of the range.
    end: SeqNumber,
    /// When it was sent, in nanoseconds.
    sent_at_ns: u64,
    /// No sample is longer: no frame arrived after now.
    most_ns: u64,
    rtt: Estimate,
}

impl Samples {
    /// Whether `ack` acknowledges a part of what is left of the range.
    #[inline(always)]
    pub(crate) fn expects(&self, ack: SeqNumber) -> bool {
        self.una.is_before(ack) && ack.is_before(self.end)
    }

    /// Takes an acknowledgement that is expected, whose frame arrived at `arrived_at_ns` or, if that is to come, now.
    #[inline(always)]
    pub(crate) fn take(&mut self, arrived_at_ns: u64, ack: SeqNumber) {
        self.rtt.take(arrived_at_ns.saturating_sub(self.sent_at_ns).min(self.most_ns));
        self.una = ack;
    }
}

impl Recovery {
    /// Whether acknowledgements can take the fast path at all. No expected acknowledgement changes that.
    #[inline]
    pub(crate) fn may_expect_acks(&self) -> bool {
        self.is_calm() && self.suspect.is_none()
    }

    /// Begins a run of expected acknowledgements. `None` if nothing is out that was sent once, or something that was
    /// sent later has arrived before it.
    #[inline]
    pub(crate) fn begin_acks(&self) -> Option<AckRun> {
        let first = self.board.first_range().filter(|first| !first.was_retransmitted)?;
        let begins = self.rack.has_nothing_beyond(first.start);
        let Sent { start, end, sent_at, .. } = *first;
        begins.then(|| AckRun { una: start, end, sent_at, in_flight: self.board.in_flight() })
    }

    /// Whether all that `ack` acknowledges was sent once. It acknowledges something, and nothing that was not sent.
    #[inline(always)]
    pub(crate) fn expects_ack(&self, run: &AckRun, ack: SeqNumber) -> bool {
        run.end.is_at_or_after(ack) || self.board.was_sent_once(ack)
    }

    /// Forgets what is in flight, which the owner remembers. Returns `false`, and changes nothing, if a part of it was
    /// sent again.
    pub(crate) fn forget_sent(&mut self) -> bool {
        self.board.forget_sent_once()
    }

    /// Begins with acknowledgements of what is left of the first range of `run`. `None` if nothing is left, or before the
    /// first sample.
    #[inline(always)]
    pub(crate) fn begin_samples(&self, run: &AckRun, now: Instant) -> Option<Samples> {
        let AckRun { una, end, sent_at, .. } = *run;
        let most_ns = now.nanos_since(sent_at).min(MOST_SAMPLE_NS);
        let sent_at_ns = sent_at.as_nanos();
        let rtt = self.rtt.estimate().filter(|_| una != end);
        rtt.map(|rtt| Samples { una, end, sent_at_ns, most_ns, rtt })
    }

    /// Takes note of all that `samples` has taken of `run`.
    #[inline(always)]
    pub(crate) fn end_samples(&mut self, run: &mut AckRun, samples: &Samples) {
        run.in_flight -= distance(run.una, samples.una);
        run.una = samples.una;
        self.rtt.set_estimate(samples.rtt);
    }

    /// Takes an expected acknowledgement of `run`, whose frame arrived at `arrived_at`.
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

    /// Takes an expected acknowledgement of at least the first range of `run`. Returns how many bytes it acknowledges,
    /// and when the last of them was sent.
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

    /// Removes what `ack` acknowledges, by the last acknowledgement of it, which arrived at `arrived_at`. Returns when the
    /// last of it was sent.
    #[inline]
    fn write_ranges(&mut self, arrived_at: Instant, ack: SeqNumber) -> Instant {
        // RACK reads the other fields for retransmitted ranges only.
        let arrival = Arrival { at: arrived_at, echoed: None, least_rtt: Duration::ZERO };
        let Self { board, rack, .. } = self;
        let mut sent_at = Instant::ZERO;
        board.acknowledge_in_flight(ack, |range| {
            sent_at = sent_at.max(range.sent_at);
            rack.delivered(range, &arrival);
        });
        sent_at
    }

    /// Ends `run`, whose last acknowledgement arrived at `arrived_at`: writes what only that decides.
    #[inline(always)]
    pub(crate) fn end_acks(&mut self, run: &AckRun, arrived_at: Instant) {
        if self.board.first().is_some_and(|start| start.is_before(run.una())) {
            self.write_ranges(arrived_at, run.una());
        }
        self.settle(run.una());
    }

    /// Takes an acknowledgement of `start` to `ack`, which a dormant connection expects: the group knows when it was
    /// last sent, and how much is outstanding.
    pub(crate) fn on_dormant_ack(
        &mut self,
        (now, arrived_at): (Instant, Instant),
        (start, ack): (SeqNumber, SeqNumber),
        (sent_at, nxt): (Instant, SeqNumber),
        congestion: &mut Congestion,
    ) {
        let arrival = Arrival { at: arrived_at, echoed: None, least_rtt: Duration::ZERO };
        let fate = Fate::InFlight;
        let range = Sent { start, end: ack, sent_at, was_retransmitted: false, fate };
        self.rack.delivered(&range, &arrival);
        let delivered = (range.bytes(), sent_at);
        self.sample((now, arrived_at), ack, delivered, distance(ack, nxt), congestion);
        self.settle(ack);
    }

    /// What follows from all expected acknowledgements as far as `ack`.
    #[inline]
    fn settle(&mut self, ack: SeqNumber) {
        self.rack.acknowledged(ack);
        self.probe.is_due = false;
        self.duplicates.reset();
    }

    /// What each expected acknowledgement says of the path: of `bytes`, after which so much is in flight.
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
