//! Loss recovery: detects lost data and chooses what to retransmit.
//!
//! Separate from the steps of RFC 9293, for which an ACK only advances SND.UNA. [`Recovery`]
//! processes each ACK separately and in order, including those of an aggregate, so aggregation does
//! not change the result. The files: `scoreboard.rs` tracks sent data, `rtt.rs` is RFC 6298, `rack.rs` and
//! `tail_probe.rs` RFC 8985, `prr.rs` RFC 9937, `newreno.rs` RFC 6582 and 3042, `spurious.rs` RFC 3522,
//! `f_rto.rs` RFC 5682.

mod expected;
mod f_rto;
mod newreno;
mod on_ack;
mod prr;
mod rack;
mod rtt;
mod scoreboard;
mod spurious;
mod statistics;
mod tail_probe;

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

pub(crate) use self::expected::{AckRun, Samples};
use self::f_rto::Frto;
use self::newreno::Duplicates;
pub(crate) use self::on_ack::AckEvent;
use self::prr::{Arrived, Prr};
use self::rack::Rack;
use self::rtt::RoundTrip;
use self::scoreboard::Scoreboard;
use self::spurious::SuspectedRecovery;
pub use self::statistics::{RecoveryPhase, RecoveryStatistics};
use self::tail_probe::{TailProbe, probe_timeout_ns};
use crate::Config;
use crate::congestion::Congestion;

/// The recovery state of everything between SND.UNA and SND.NXT.
#[derive(Debug)]
pub(crate) struct Recovery {
    board: Scoreboard,
    pub(crate) rtt: RoundTrip,
    rack: Rack,
    prr: Prr,
    duplicates: Duplicates,
    probe: TailProbe,
    phase: Phase,
    suspect: Option<SuspectedRecovery>,
    frto: Frto,
    /// `true` if SACK was negotiated.
    uses_sack: bool,
    mss: u32,
    /// `true` if the next retransmission may exceed the window, which happens only without SACK (RFC 5681,
    /// section 3.2, step 3).
    is_urgent: bool,
    /// The time at which RACK next checks for losses; `None` if no check is scheduled.
    look_again: Option<Instant>,
    /// SND.NXT at the last reduction of the congestion window; `None` before the first reduction. Until this
    /// number is acknowledged, ECN marks cause no further reduction.
    reduced_until: Option<SeqNumber>,
    /// `true` once the window is reduced; cleared by [`Recovery::take_reduction`].
    has_reduced: bool,
    /// The number of segments retransmitted so far.
    resent_segments: u32,
    /// The number of loss events so far, at most one per flight. The counter wraps.
    loss_events: u32,
}

/// The phase of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No recovery is active.
    Open,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery { recover: SeqNumber },
    /// Recovery after a timeout, or after segments did not fit the path, until `recover` is acknowledged.
    Loss { recover: SeqNumber, by_timeout: bool },
}

impl Recovery {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            board: Scoreboard::with_limit(config.sent_ranges),
            rtt: RoundTrip::new(config.min_rto, config.initial_rto),
            rack: Rack::default(),
            prr: Prr::default(),
            duplicates: Duplicates::default(),
            probe: TailProbe::default(),
            phase: Phase::Open,
            suspect: None,
            frto: Frto::Off,
            uses_sack: false,
            mss: config.maximum_segment_size.into(),
            is_urgent: false,
            look_again: None,
            reduced_until: None,
            has_reduced: false,
            resent_segments: 0,
            loss_events: 0,
        }
    }

    /// Sets the features and the segment size that the handshake has agreed on.
    pub(crate) fn start(&mut self, uses_sack: bool, mss: u32) {
        (self.uses_sack, self.mss) = (uses_sack, mss);
    }

    /// Drops all records and frees their memory. Nothing may be sent afterwards.
    pub(crate) fn free_memory(&mut self) {
        self.board = Scoreboard::with_limit(0);
        self.probe.cancel();
        (self.phase, self.suspect, self.look_again) = (Phase::Open, None, None);
        self.frto = Frto::Off;
    }

    /// Frees the memory if nothing is outstanding.
    pub(crate) fn free_unused(&mut self) {
        self.board.free_unused();
    }

    /// Sets the maximum number of ranges of sent data that loss recovery tracks.
    pub(crate) fn set_limit(&mut self, ranges: usize) {
        self.board.set_limit(ranges);
    }

    /// Returns `true` if an ACK of new data must not restart the retransmission timer.
    pub(crate) fn keeps_timer(&self) -> bool {
        self.duplicates.keeps_timer()
    }

    /// Returns the number of bytes that count as in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.board.in_flight().saturating_sub(self.duplicates.credit())
    }

    /// Returns `true` if nothing is lost, held out of order or being recovered, and no probe is in flight.
    /// Then an ACK without new data has no effect on recovery.
    #[inline]
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.phase == Phase::Open
            && self.board.sacked() == 0
            && self.board.lost() == 0
            && self.look_again.is_none()
            && self.frto == Frto::Off
            && !self.has_reduced
            && !self.probe.is_out()
    }

    /// Returns `true` if there is space to track another transmitted segment.
    pub(crate) fn has_room(&self) -> bool {
        self.board.has_room()
    }

    /// Returns `true` if anything must be retransmitted.
    pub(crate) fn has_lost(&self) -> bool {
        self.board.lost() > 0
    }

    /// Returns two flags for F-RTO, which examines whether a timeout was spurious (RFC 5682). The first is
    /// `true` if new segments must be sent before lost ones; the second is `true` if these new segments have
    /// been sent.
    pub(crate) fn frto_flags(&self) -> (bool, bool) {
        (self.frto.prefers_new(), self.frto.waits())
    }

    /// Returns the first lost range, cut to `bytes` bytes; `None` if nothing is lost.
    pub(crate) fn first_lost(&self, bytes: u32) -> Option<(SeqNumber, SeqNumber)> {
        self.board.first_lost(bytes)
    }

    /// Returns `true` if the first lost range may be sent even if the congestion window is full.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Returns the time at which [`Recovery::on_reorder_timeout`] is due; `None` if no check is scheduled.
    pub(crate) fn reorder_check_at(&self) -> Option<Instant> {
        self.look_again
    }

    /// Records that the range `start` to `end` is sent for the first time.
    pub(crate) fn sent(&mut self, start: SeqNumber, end: SeqNumber, now: Instant) {
        self.board.sent(start, end, now);
        self.frto.sent_new(crate::sequence::distance(start, end));
        if self.probe.is_due {
            self.probe.sent(end, false);
        }
        self.prr.sent(crate::sequence::distance(start, end));
    }

    /// Records that the range `start` to `end` is retransmitted.
    pub(crate) fn sent_again(&mut self, start: SeqNumber, end: SeqNumber, now: Instant) {
        self.board.sent_again(start, end, now);
        self.is_urgent = false;
        self.frto.sent_again(end);
        let bytes = crate::sequence::distance(start, end);
        let segments = bytes.div_ceil(self.mss.max(1));
        self.resent_segments = self.resent_segments.saturating_add(segments);
        self.prr.sent(bytes);
        if let Some(suspect) = &mut self.suspect {
            suspect.retransmitted(now);
        }
    }

    /// Marks all data that the peer does not hold as lost, because the retransmission timer has fired (RFC
    /// 6298, section 5.4; RFC 5681, section 3.1).
    pub(crate) fn on_timeout(&mut self, nxt: SeqNumber, congestion: &mut Congestion) {
        if !self.is_after_timeout() {
            // A timeout that ends a recovery is justified: an old echo belongs to that recovery, not to the
            // first flight.
            let is_suspect = self.phase == Phase::Open;
            self.suspect = is_suspect.then(|| SuspectedRecovery::new(congestion.before_loss()));
            self.reduce(nxt, congestion);
            // Data that the peer holds out of order shows that something is lost.
            let may_ask = is_suspect && self.board.sacked() == 0;
            self.frto = if may_ask { Frto::First { end: None } } else { Frto::Off };
        } else {
            self.frto = Frto::Off;
        }
        self.board.mark_all_lost();
        self.is_urgent = false;
        self.duplicates.reset();
        self.probe.cancel();
        self.look_again = None;
        self.phase = Phase::Loss { recover: nxt, by_timeout: true };
        congestion.set_cwnd(self.mss);
        self.rtt.back_off();
    }

    /// Forgets that the recovery may be spurious, because its congestion control is replaced: an undo would bring the old
    /// one back.
    pub(crate) fn forget_suspicion(&mut self) {
        (self.suspect, self.frto) = (None, Frto::Off);
    }

    /// Returns `true` until the data that was outstanding at the last timeout is acknowledged.
    pub(crate) fn is_after_timeout(&self) -> bool {
        matches!(self.phase, Phase::Loss { by_timeout: true, .. })
    }

    /// Marks segments that do not fit the path as lost. Such a loss does not indicate congestion: slow start
    /// begins again, and its threshold is the previous window (RFC 1191, section 6.5).
    pub(crate) fn on_packet_too_big(&mut self, nxt: SeqNumber, congestion: &mut Congestion) {
        let mss = self.mss;
        let lost = self.board.mark_lost(|range| range.bytes() > mss);
        self.frto = Frto::Off;
        if lost > 0 && self.phase == Phase::Open {
            self.duplicates.reset();
            self.probe.cancel();
            self.phase = Phase::Loss { recover: nxt, by_timeout: false };
            congestion.begin_again();
        }
    }

    /// Sets the size of a full segment to `mss` bytes.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = mss;
    }

    /// Checks for losses again because RACK's timer has fired.
    pub(crate) fn on_reorder_timeout(
        &mut self,
        now: Instant,
        nxt: SeqNumber,
        congestion: &mut Congestion,
    ) {
        self.detect_loss(now);
        if self.has_lost() && self.phase == Phase::Open {
            self.enter_recovery(nxt, 0, congestion);
            self.limit_by_prr(Arrived::default(), congestion);
        }
    }

    /// Reduces the window because a router has marked a segment (RFC 3168, section 6.1.2). A window is
    /// reduced at most once per flight, whatever the reason.
    pub(crate) fn on_ecn_echo(
        &mut self,
        una: SeqNumber,
        nxt: SeqNumber,
        congestion: &mut Congestion,
    ) {
        if !self.is_answered(una) && self.phase == Phase::Open {
            self.reduce(nxt, congestion);
            congestion.set_cwnd(congestion.ssthresh());
        }
    }

    /// Returns `true` if the window has been reduced, for any reason, since the last call.
    pub(crate) fn take_reduction(&mut self) -> bool {
        core::mem::take(&mut self.has_reduced)
    }

    /// Returns the number of loss events so far, at most one per flight. The counter wraps.
    #[inline]
    pub(crate) fn loss_events(&self) -> u32 {
        self.loss_events
    }

    /// Returns the number of bytes that the peer holds out of order.
    pub(crate) fn sacked(&self) -> u32 {
        self.board.sacked()
    }

    /// Returns `true` if the congestion window has already been reduced for the flight that contains `una`. A
    /// loss and a mark in one flight count as one (RFC 3168, section 6.1.2).
    fn is_answered(&self, una: SeqNumber) -> bool {
        self.reduced_until.is_some_and(|until| una.is_before(until))
    }

    /// Lowers the slow-start threshold according to the number of bytes in flight.
    fn reduce(&mut self, nxt: SeqNumber, congestion: &mut Congestion) {
        congestion.on_loss(self.flight_size(congestion));
        (self.reduced_until, self.has_reduced) = (Some(nxt), true);
        self.loss_events = self.loss_events.wrapping_add(1);
    }

    /// Returns the timeout of the tail loss probe in nanoseconds (RFC 8985, section 7.2); `None` if no probe
    /// may be sent.
    pub(crate) fn probe_timeout_ns(&self) -> Option<u64> {
        let is_one_segment = self.board.in_flight() <= self.mss;
        self.may_probe().then(|| probe_timeout_ns(self.rtt.smoothed_ns(), is_one_segment))
    }

    /// Returns `true` if a tail loss probe may be sent.
    pub(crate) fn may_probe(&self) -> bool {
        self.uses_sack
            && self.phase == Phase::Open
            && self.board.sacked() == 0
            && !self.probe.is_out()
    }

    /// Makes the next segment the tail loss probe, because the probe timer has fired.
    pub(crate) fn probe_is_due(&mut self) {
        self.probe.is_due = true;
    }

    /// Returns `true` if a tail loss probe is due.
    pub(crate) fn has_probe_due(&self) -> bool {
        self.probe.is_due
    }

    /// Returns `true` if a tail loss probe is in flight.
    pub(crate) fn has_probe_out(&self) -> bool {
        self.probe.is_out()
    }

    /// Returns the range of the tail loss probe if nothing new can be sent: the last segment (RFC 8985,
    /// section 7.3).
    pub(crate) fn probe_range(&self) -> Option<(SeqNumber, SeqNumber)> {
        self.board.last_unsacked(self.mss)
    }

    /// Records that the last segment is retransmitted as the tail loss probe.
    pub(crate) fn probe_sent_again(&mut self, nxt: SeqNumber) {
        self.probe.sent(nxt, true);
    }

    /// Returns FlightSize (RFC 5681), without the segments of limited transmit: the bytes in flight before the
    /// ACKs that show the loss. The current number of bytes in flight would be too low, because a peer that
    /// aggregates segments acknowledges in one ACK everything that arrived before the loss.
    fn flight_size(&self, congestion: &Congestion) -> u32 {
        let outstanding = self.board.in_flight() + self.board.sacked() + self.board.lost();
        outstanding.max(congestion.flight()).min(congestion.cwnd())
    }

    fn detect_loss(&mut self, now: Instant) {
        let has_evidence =
            self.phase != Phase::Open || self.board.sacked().div_ceil(self.mss) >= DUP_THRESHOLD;
        let least = self.rtt.least();
        let times = (least, self.rtt.smoothed().unwrap_or(least));
        self.look_again = self.rack.detect_loss(&mut self.board, now, has_evidence, times);
    }

    /// Enters fast recovery. The ACK that begins it delivered `delivered` bytes.
    fn enter_recovery(&mut self, nxt: SeqNumber, delivered: u32, congestion: &mut Congestion) {
        self.suspect = Some(SuspectedRecovery::new(congestion.before_loss()));
        if !self.board.first().is_some_and(|una| self.is_answered(una)) {
            self.reduce(nxt, congestion);
        }
        // Data that the peer held before is not delivered during recovery (RFC 9937, section 6.1).
        let flight = self.board.in_flight() + self.board.lost() + delivered;
        self.prr = Prr::start(flight, congestion.flight().saturating_sub(flight));
        self.probe.cancel();
        self.phase = Phase::Recovery { recover: nxt };
    }

    /// Sets the congestion window by PRR (RFC 9937) after an ACK that reports `more`. Used only with SACK.
    fn limit_by_prr(&mut self, more: Arrived, congestion: &mut Congestion) {
        let pipe = self.board.in_flight();
        let window = self.prr.window(more, pipe, congestion.ssthresh(), self.mss);
        congestion.set_cwnd(window);
    }
}

/// Returns `at`, rounded down to a millisecond, which is the precision of timestamps.
fn to_millis(at: Instant) -> Instant {
    Instant::from_nanos(at.as_nanos() / NANOS_PER_MILLI * NANOS_PER_MILLI)
}

const NANOS_PER_MILLI: u64 = 1_000_000;
/// DupThresh: the number of segments delivered out of order from which on a loss is assumed, equal to the
/// number of duplicate ACKs in RFC 5681 (RFC 8985, section 6.2.4).
const DUP_THRESHOLD: u32 = 3;
