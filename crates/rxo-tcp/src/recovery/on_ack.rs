//! Processes one ACK, from the scoreboard to the congestion window.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;
use rxo_wire::tcp::{SackBlock, SackBlocks};

use super::f_rto::{Frto, FrtoVerdict};
use super::prr::Arrived;
use super::rack::Arrival;
use super::scoreboard::{RangeState, Sent};
use super::tail_probe::ProbeAck;
use super::{Phase, Recovery};
use crate::congestion::{Acked, Before, Congestion, Delivery};

/// The values of one ACK that loss recovery needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckEvent<'a> {
    pub(crate) now: Instant,
    /// The arrival time of the ACK's frame; not after `now`.
    pub(crate) arrived_at: Instant,
    /// SEG.ACK: the ACK number, at or after SND.UNA.
    pub(crate) ack: SeqNumber,
    /// SND.NXT: the next sequence number to be sent for the first time.
    pub(crate) nxt: SeqNumber,
    /// `true` if the ACK is a duplicate ACK: no data, an unchanged window, and data outstanding
    /// (RFC 5681, section 2).
    pub(crate) is_duplicate: bool,
    pub(crate) sack: &'a SackBlocks,
    /// The send time of the segment whose timestamp the ACK echoes, to the millisecond; `None` if
    /// unknown.
    pub(crate) echoed: Option<Instant>,
}

/// The data that one ACK reports as delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Delivered {
    /// Number of bytes acknowledged in order for the first time.
    acked: u32,
    /// Number of bytes delivered for the first time, in order or not.
    bytes: u32,
    /// The latest send time among the delivered ranges that were never retransmitted, and that arrived just now as
    /// far as the ACK shows; `None` if there are none.
    sent_at: Option<Instant>,
    /// The last send time of the first delivered range; `None` unless that range was retransmitted.
    first_again_at: Option<Instant>,
    /// The latest send time among all delivered ranges; `None` if nothing was delivered.
    latest_at: Option<Instant>,
    has_retransmitted: bool,
    /// `true` if the ACK caused more data to be marked as lost.
    shows_loss: bool,
    /// `true` if data was being retransmitted after a timeout.
    after_timeout: bool,
}

impl Delivered {
    fn arrived(&self) -> Arrived {
        Arrived { bytes: self.bytes, is_safe: self.acked > 0 && !self.shows_loss }
    }

    fn add(&mut self, range: &Sent) {
        self.bytes += range.bytes();
        self.latest_at = self.latest_at.max(Some(range.sent_at));
        if range.was_retransmitted {
            self.has_retransmitted = true;
        } else {
            self.sent_at = self.sent_at.max(Some(range.sent_at));
        }
    }
}

impl Recovery {
    /// Processes one ACK. The cost is proportional to the ranges that it covers, or to all ranges
    /// while data is out of order or lost.
    pub(crate) fn on_ack(&mut self, event: &AckEvent<'_>, congestion: &mut Congestion) {
        let flight_before = self.board.in_flight();
        let mut delivered = self.take_delivered(event);
        self.sample_round_trip(event, &delivered, congestion.is_owners());
        if delivered.acked > 0 {
            self.rtt.forget_backoff();
            self.probe.is_due = false;
            self.check_spurious(event, congestion);
        }
        if self.frto != Frto::Off {
            self.update_frto(event, delivered.acked > 0, congestion);
        }
        let reports_duplicate = event.sack.has_duplicate(event.ack);
        if reports_duplicate {
            self.rack.duplicate_arrived(event.nxt);
        }
        self.rack.acknowledged(event.ack);
        let lost_before = self.board.lost();
        self.find_losses(event, &delivered);
        delivered.shows_loss = self.board.lost() > lost_before;
        delivered.after_timeout = self.is_after_timeout();
        self.probe_answered(event, reports_duplicate, congestion);
        if self.leave_phase(event.ack, congestion) {
            // Data that the peer held before was counted during recovery. Without SACK it is unknown what the
            // peer held (RFC 6582, section 3.2, step 3).
            delivered.acked = if self.uses_sack { delivered.acked.min(delivered.bytes) } else { 0 };
        }
        self.follow_phase(event, &delivered, congestion);
        if delivered.bytes > 0 {
            congestion.on_delivered(|| self.delivery(event, &delivered, flight_before));
        }
    }

    fn delivery(
        &self,
        event: &AckEvent<'_>,
        delivered: &Delivered,
        flight_before: u32,
    ) -> Delivery {
        let sent_once_at = delivered.sent_at.filter(|_| !delivered.has_retransmitted);
        Delivery {
            now: event.arrived_at,
            bytes: delivered.bytes,
            sent_at: delivered.latest_at,
            rtt_ns: sent_once_at.map(|sent_at| event.arrived_at.nanos_since(sent_at)),
            in_flight: (flight_before, self.board.in_flight()),
            shows_loss: delivered.shows_loss,
            is_recovering: matches!(self.phase, Phase::Recovery { .. }),
        }
    }

    fn take_delivered(&mut self, event: &AckEvent<'_>) -> Delivered {
        let (at, echoed, least_rtt) = (event.arrived_at, event.echoed, self.rtt.least());
        let arrival = Arrival { at, echoed, least_rtt };
        let mut delivered = Delivered::default();
        let Self { board, rack, .. } = self;
        board.acknowledge(event.ack, |range| {
            if delivered.acked == 0 && range.was_retransmitted {
                delivered.first_again_at = Some(range.sent_at);
            }
            delivered.acked += range.bytes();
            if range.state != RangeState::Sacked {
                delivered.add(range);
                rack.delivered(range, &arrival);
            }
        });
        if self.uses_sack {
            // The peer echoes a segment that arrived in order, so the echo does not apply to out-of-order
            // ranges.
            let arrival = Arrival { echoed: None, ..arrival };
            // The peer lists the block that changed last first. Sorted here, because RACK counts out-of-order
            // deliveries as reordering.
            let blocks = event.sack.by_distance_from(event.ack);
            for block in blocks.as_slice().iter().filter(|block| is_valid(block, event)) {
                let sent_at = delivered.sent_at;
                board.sack(*block, |range| {
                    delivered.add(range);
                    rack.delivered(range, &arrival);
                });
                // Only the first block has just changed (RFC 2018, section 4). The others may report data that
                // arrived long ago, while the peer listed other blocks.
                if event.sack.as_slice().first() != Some(block) {
                    delivered.sent_at = sent_at;
                }
            }
        }
        delivered
    }

    /// Takes a round-trip sample from data that was sent only once (RFC 6298, section 3), or from the timestamp
    /// (RFC 7323, section 4). If the ACK also covers a retransmission, data that was sent only once gives no
    /// sample, because it may have waited for that retransmission. An echo older than the last retransmission
    /// gives no sample either: if an ACK was lost, the next ACK repeats the echo of the lost one (RFC 7323,
    /// section 5.3, R2). Such a sample would measure our own timeout and double the next timeout, up to two
    /// minutes.
    ///
    /// `others_repair` means that the owner repairs losses by segments to a whole group. Such a repair may have
    /// delivered data that this connection sent only once: an echo that is newer than the data shows that, and data out
    /// of order gives no sample during recovery.
    fn sample_round_trip(
        &mut self,
        event: &AckEvent<'_>,
        delivered: &Delivered,
        others_repair: bool,
    ) {
        let again_at = delivered.first_again_at.map(super::to_millis);
        let is_sample = |echoed: &Instant| {
            delivered.acked > 0 && again_at.is_none_or(|again_at| *echoed >= again_at)
        };
        let by_timestamp = event.echoed.filter(is_sample);
        let is_in_order = delivered.acked > 0 || self.phase == Phase::Open;
        let is_own = |at: &Instant| is_in_order && by_timestamp.is_none_or(|echoed| echoed <= *at);
        let may_sample =
            |at: &Instant| !delivered.has_retransmitted && (!others_repair || is_own(at));
        if let Some(sent_at) = delivered.sent_at.filter(may_sample) {
            self.rtt.sample(event.arrived_at.since(sent_at));
        } else if let Some(sent_at) = by_timestamp {
            self.rtt.sample(event.arrived_at.since(sent_at).max(Duration::from_millis(1)));
        }
    }

    /// Decides, at the first ACK after a retransmission, whether the retransmission was spurious
    /// (Eifel, RFC 3522).
    fn check_spurious(&mut self, event: &AckEvent<'_>, congestion: &mut Congestion) {
        if event.echoed.is_none() && self.frto != Frto::Off {
            return;
        }
        self.frto = Frto::Off;
        let Some(suspect) = self.suspect.take_if(|suspect| suspect.has_retransmitted()) else {
            return;
        };
        if let Some(before) = suspect.check_spurious(event.echoed) {
            self.undo_recovery(before, congestion);
        }
    }

    /// Decides, at the second ACK after a timeout, whether the timeout was spurious (F-RTO, RFC
    /// 5682).
    fn update_frto(&mut self, event: &AckEvent<'_>, advances: bool, congestion: &mut Congestion) {
        let Phase::Loss { recover, .. } = self.phase else {
            self.frto = Frto::Off;
            return;
        };
        let was = self.frto;
        match self.frto.on_ack(event.ack, recover, advances, event.is_duplicate) {
            FrtoVerdict::None => {}
            FrtoVerdict::Justified => {
                self.suspect = None;
                if was.waits() {
                    congestion.set_cwnd(SEGMENTS_AFTER_F_RTO * self.mss);
                }
            }
            FrtoVerdict::Spurious => {
                if let Some(suspect) = self.suspect.take() {
                    self.undo_recovery(suspect.into_before(), congestion);
                }
            }
        }
    }

    /// Restores the state before the recovery, because nothing was lost (RFC 4015).
    fn undo_recovery(&mut self, before: Before, congestion: &mut Congestion) {
        congestion.restore(before);
        self.board.find_all();
        self.duplicates.reset();
        self.rack.was_reordering();
        self.phase = Phase::Open;
    }

    fn find_losses(&mut self, event: &AckEvent<'_>, delivered: &Delivered) {
        if self.uses_sack {
            let is_in_order = self.board.sacked() == 0 && !delivered.has_retransmitted;
            if is_in_order && self.phase == Phase::Open {
                self.look_again = None;
            } else {
                self.detect_loss(event.now);
            }
        } else if event.is_duplicate && !matches!(self.phase, Phase::Loss { .. }) {
            let is_third = self.duplicates.count(self.mss);
            if is_third && self.phase == Phase::Open {
                self.mark_first_lost();
            }
        }
    }

    fn mark_first_lost(&mut self) {
        self.board.mark_first_lost(self.mss);
        self.is_urgent = true;
    }

    fn probe_answered(
        &mut self,
        event: &AckEvent<'_>,
        reports_duplicate: bool,
        congestion: &mut Congestion,
    ) {
        let is_duplicate = event.is_duplicate && event.sack.is_empty();
        let answer = ProbeAck { ack: event.ack, reports_duplicate, is_duplicate };
        if self.probe.on_ack(&answer) && self.phase == Phase::Open {
            self.reduce(event.nxt, congestion);
            congestion.set_cwnd(congestion.ssthresh());
        }
    }

    /// Ends the recovery if `ack` acknowledges all data that was outstanding when the recovery began. Returns
    /// `true` if fast recovery has ended.
    fn leave_phase(&mut self, ack: SeqNumber, congestion: &mut Congestion) -> bool {
        let (Phase::Recovery { recover } | Phase::Loss { recover, .. }) = self.phase else {
            return false;
        };
        if ack.is_before(recover) {
            return false;
        }
        let was_recovery = matches!(self.phase, Phase::Recovery { .. });
        if was_recovery {
            congestion.set_cwnd(self.window_after(congestion.ssthresh()));
        } else if congestion.is_owners() {
            congestion.set_cwnd(congestion.ssthresh());
        }
        self.phase = Phase::Open;
        self.suspect = None;
        self.duplicates.reset();
        self.rack.recovery_ended();
        was_recovery
    }

    /// Returns the congestion window after fast recovery, in bytes. With SACK the window is the threshold (RFC
    /// 9937). Without SACK the window is smaller, to avoid a burst of segments (RFC 6582, section 3.2, step 3).
    fn window_after(&self, ssthresh: u32) -> u32 {
        let in_flight = self.board.in_flight().max(self.mss);
        if self.uses_sack { ssthresh } else { ssthresh.min(in_flight + self.mss) }
    }

    fn follow_phase(
        &mut self,
        event: &AckEvent<'_>,
        delivered: &Delivered,
        congestion: &mut Congestion,
    ) {
        match self.phase {
            Phase::Open if self.has_lost() => {
                self.enter_recovery(event.nxt, delivered.bytes, congestion);
                if self.uses_sack {
                    self.limit_by_prr(delivered.arrived(), congestion);
                } else {
                    congestion.set_cwnd(congestion.ssthresh());
                }
            }
            Phase::Recovery { .. } if self.uses_sack => {
                self.limit_by_prr(delivered.arrived(), congestion);
            }
            Phase::Recovery { .. } if delivered.acked > 0 => {
                // A partial ACK identifies the next loss (RFC 6582, section 3.2, step 3).
                self.duplicates.partial(delivered.acked, self.mss);
                self.mark_first_lost();
            }
            Phase::Recovery { .. } => {}
            Phase::Open | Phase::Loss { .. } => self.grow(event, delivered, congestion),
        }
    }

    fn grow(&mut self, event: &AckEvent<'_>, delivered: &Delivered, congestion: &mut Congestion) {
        if delivered.acked == 0 {
            return;
        }
        if self.phase == Phase::Open {
            self.duplicates.reset();
        }
        let sent_once_at = delivered.sent_at.filter(|_| !delivered.has_retransmitted);
        congestion.on_ack(&Acked {
            now: event.now,
            bytes: delivered.acked,
            rtt: self.rtt.smoothed().unwrap_or_default(),
            ack: event.ack,
            nxt: event.nxt,
            sample_ns: sent_once_at.map(|sent_at| event.arrived_at.nanos_since(sent_at)),
            after_timeout: delivered.after_timeout,
        });
    }
}

/// The congestion window, in segments, after F-RTO has found that a timeout was genuine (RFC 5682, section 2.1, step 3
/// (a)).
const SEGMENTS_AFTER_F_RTO: u32 = 3;

/// Returns `true` if `block` lies within the outstanding data (RFC 2018, section 5).
fn is_valid(block: &SackBlock, event: &AckEvent<'_>) -> bool {
    block.start.is_before(block.end)
        && block.start.is_at_or_after(event.ack)
        && event.nxt.is_at_or_after(block.end)
}
