//! The fast path of an acknowledgement: it covers only data that was sent once, while nothing is lost or being
//! recovered. Nearly all acknowledgements are such.
//!
//! The result is that of `on_ack.rs`, without the checks whose results are known.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use super::Recovery;
use super::rack::Arrival;
use super::scoreboard::{Fate, Sent};
use crate::congestion::{Acked, Congestion, Delivery};
use crate::sequence::distance;

impl Recovery {
    /// Whether acknowledgements can take the fast path at all. No expected acknowledgement changes that.
    pub(crate) fn may_expect_acks(&self) -> bool {
        self.is_calm() && self.suspect.is_none()
    }

    /// Whether `ack` acknowledges something, and all of it was sent once.
    #[inline]
    pub(crate) fn expects_ack(&self, ack: SeqNumber) -> bool {
        self.board.was_sent_once(ack)
    }

    /// Forgets what is in flight, which the owner remembers. Returns `false`, and changes nothing, if a part of it was
    /// sent again.
    pub(crate) fn forget_sent(&mut self) -> bool {
        self.board.forget_sent_once()
    }

    /// Takes an expected acknowledgement, whose frame arrived at `arrived_at`.
    pub(crate) fn on_expected_ack(
        &mut self,
        now: Instant,
        arrived_at: Instant,
        ack: SeqNumber,
        congestion: &mut Congestion,
    ) {
        // RACK reads the other fields for retransmitted ranges only.
        let arrival = Arrival { at: arrived_at, echoed: None, least_rtt: Duration::ZERO };
        let (mut bytes, mut sent_at) = (0, Instant::ZERO);
        let Self { board, rack, .. } = self;
        board.acknowledge_in_flight(ack, |range| {
            bytes += range.bytes();
            sent_at = sent_at.max(range.sent_at);
            rack.delivered(range, &arrival);
        });
        self.note_expected(
            (now, arrived_at),
            ack,
            (bytes, sent_at),
            self.board.in_flight(),
            congestion,
        );
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
        self.note_expected((now, arrived_at), ack, delivered, distance(ack, nxt), congestion);
    }

    /// What follows from an expected acknowledgement of `bytes`, after which so much is in flight.
    #[inline(always)]
    fn note_expected(
        &mut self,
        (now, arrived_at): (Instant, Instant),
        ack: SeqNumber,
        (bytes, sent_at): (u32, Instant),
        in_flight: u32,
        congestion: &mut Congestion,
    ) {
        self.rack.acknowledged(ack);
        let sample_ns = arrived_at.nanos_since(sent_at);
        self.rtt.sample_ns(sample_ns);
        self.probe.is_due = false;
        self.duplicates.reset();
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
