//! RACK: a segment is lost if a segment sent later has arrived, and enough time for reordering has passed (RFC
//! 8985, section 6.2).

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use super::scoreboard::{Scoreboard, Sent};
use crate::sequence::later;

/// The state of RACK. It describes the most recently sent segment among all segments that have arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    latest: Option<Latest>,
    /// RACK.fack: the highest sequence number that has arrived; `None` before the first.
    fack: Option<SeqNumber>,
    /// The number of reorderings seen; RACK.reordering_seen if more than zero.
    reordered: u32,
    /// The number of ACKs that reported a duplicate.
    duplicates_reported: u32,
    /// RACK.reo_wnd_mult minus one: the number of quarters of the minimum round-trip time by which the
    /// reordering window was lengthened.
    more_quarters: u32,
    /// RACK.reo_wnd_persist: the number of recoveries until the reordering window is shortened again.
    recoveries_left: u32,
    /// RACK.dsack_round: until this sequence number is acknowledged, further duplicates are ignored. `None`
    /// if duplicates are not ignored.
    round_ends: Option<SeqNumber>,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    /// RACK.xmit_ts: the send time of the most recently sent segment of all that have arrived.
    sent_at: Instant,
    /// RACK.end_seq: the sequence number after the segment that was sent at `sent_at`.
    end: SeqNumber,
    /// The time at which the segment that was sent at `sent_at` arrived, as far as known. RACK.rtt is the
    /// time since `sent_at`.
    arrived_at: Instant,
}

/// The values that RACK needs about the arrival of a range of sent data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    /// The send time of the segment that the peer echoes, to the millisecond; `None` for out-of-order data.
    pub(crate) echoed: Option<Instant>,
    /// The minimum round-trip time of the connection.
    pub(crate) least_rtt: Duration,
}

impl Rack {
    /// Records that `range` has arrived (RFC 8985, section 6.2, steps 2 and 3).
    #[inline]
    pub(crate) fn delivered(&mut self, range: &Sent, arrival: &Arrival) {
        self.watch_order(range);
        if range.was_retransmitted && is_of_the_original(range, arrival) {
            return;
        }
        let (sent_at, end, arrived_at) = (range.sent_at, range.end, arrival.at);
        if self.latest.is_none_or(|latest| was_sent_after((sent_at, end), latest.key())) {
            self.latest = Some(Latest { sent_at, end, arrived_at });
        }
    }

    fn watch_order(&mut self, range: &Sent) {
        let fack = self.fack.unwrap_or(range.end);
        if range.end.is_before(fack) && !range.was_retransmitted {
            self.reordered = self.reordered.saturating_add(1);
        }
        self.fack = Some(later(fack, range.end));
    }

    /// Returns `true` if no segment beyond the sequence number `start` is known to have been received, by ACK
    /// or SACK.
    pub(crate) fn has_nothing_beyond(&self, start: SeqNumber) -> bool {
        self.fack.is_none_or(|fack| start.is_at_or_after(fack))
    }

    /// Records a reordering: retransmitted data had not been lost.
    pub(crate) fn was_reordering(&mut self) {
        self.reordered = self.reordered.saturating_add(1);
    }

    /// Lengthens the reordering window because the peer has received data twice (RFC 8985, section 6.2, step 4).
    pub(crate) fn duplicate_arrived(&mut self, nxt: SeqNumber) {
        self.duplicates_reported = self.duplicates_reported.saturating_add(1);
        if self.round_ends.is_none() {
            self.round_ends = Some(nxt);
            self.more_quarters += 1;
            self.recoveries_left = RECOVERIES_TO_FORGET;
        }
    }

    /// Returns the number of ACKs that have reported a duplicate.
    pub(crate) fn duplicates_reported(&self) -> u32 {
        self.duplicates_reported
    }

    /// Returns the number of reorderings seen so far.
    pub(crate) fn reordered(&self) -> u32 {
        self.reordered
    }

    /// Records that everything before `una` is acknowledged.
    pub(crate) fn acknowledged(&mut self, una: SeqNumber) {
        if self.round_ends.is_some_and(|end| una.is_at_or_after(end)) {
            self.round_ends = None;
        }
    }

    /// Records that a recovery has ended (RFC 8985, section 6.2, step 4).
    pub(crate) fn recovery_ended(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
        if self.recoveries_left == 0 {
            self.more_quarters = 0;
        }
    }

    /// Returns RACK.reo_wnd, the time to wait for reordered segments (RFC 8985, section 6.2, step 4).
    /// `has_evidence` is `true` during recovery, or if three later segments have arrived.
    fn reordering_window(&self, has_evidence: bool, least: Duration, srtt: Duration) -> Duration {
        if self.reordered == 0 && has_evidence {
            return Duration::ZERO;
        }
        (least * (self.more_quarters + 1) / 4).min(srtt)
    }

    /// Marks segments as lost (RFC 8985, section 6.2, step 5). Returns the time of the next check; `None` if no
    /// further segment can become lost by the passage of time.
    pub(crate) fn detect_loss(
        &self,
        board: &mut Scoreboard,
        now: Instant,
        has_evidence: bool,
        (least, srtt): (Duration, Duration),
    ) -> Option<Instant> {
        let latest = self.latest?;
        let wait = latest.rtt() + self.reordering_window(has_evidence, least, srtt);
        let mut look_again: Option<Instant> = None;
        board.mark_lost(|range| {
            if !was_sent_after(latest.key(), (range.sent_at, range.end)) {
                return false;
            }
            let lost_at = range.sent_at + wait;
            if lost_at > now {
                look_again = look_again.max(Some(lost_at));
            }
            lost_at <= now
        });
        look_again
    }
}

impl Latest {
    fn key(&self) -> (Instant, SeqNumber) {
        (self.sent_at, self.end)
    }

    /// Returns RACK.rtt: the round-trip time of the most recently sent segment of all that have arrived.
    fn rtt(&self) -> Duration {
        self.arrived_at.since(self.sent_at)
    }
}

/// Returns `true` if `a` was sent after `b` (RACK_sent_after); ties are broken by sequence number.
fn was_sent_after(a: (Instant, SeqNumber), b: (Instant, SeqNumber)) -> bool {
    a.0 > b.0 || (a.0 == b.0 && b.1.is_before(a.1))
}

/// Returns `true` if the ACK of a retransmitted range comes too early to be caused by the retransmission, so
/// that it acknowledges the first transmission (RFC 8985, section 6.2, step 2).
fn is_of_the_original(range: &Sent, arrival: &Arrival) -> bool {
    let rtt = arrival.at.since(range.sent_at);
    let echoes_older = arrival.echoed.is_some_and(|at| at < super::to_millis(range.sent_at));
    echoes_older || rtt < arrival.least_rtt
}

/// The initial value of RACK.reo_wnd_persist: a number of recoveries.
const RECOVERIES_TO_FORGET: u32 = 16;

#[cfg(test)]
mod tests;
