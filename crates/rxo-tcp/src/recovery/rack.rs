//! RACK: a segment is lost when one that was sent later has arrived, and time enough has passed
//! for reordering (RFC 8985, section 6.2).

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use super::scoreboard::{Scoreboard, Sent};
use crate::sequence::later;

/// What RACK knows of the segment that was sent last of all that arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    latest: Option<Latest>,
    /// RACK.fack: the highest sequence number that arrived.
    fack: Option<SeqNumber>,
    /// How often reordering was seen; RACK.reordering_seen when more than zero.
    reordered: u32,
    /// Acknowledgements that reported a duplicate.
    duplicates_reported: u32,
    /// RACK.reo_wnd_mult, less one.
    more_quarters: u32,
    /// RACK.reo_wnd_persist.
    recoveries_left: u32,
    /// RACK.dsack_round: until this is acknowledged, more duplicates say nothing new.
    round_ends: Option<SeqNumber>,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    /// RACK.xmit_ts.
    sent_at: Instant,
    /// RACK.end_seq.
    end: SeqNumber,
    /// When it arrived, as far as is known: RACK.rtt is the time between.
    arrived_at: Instant,
}

/// A delivered range, and what its acknowledgement said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    /// When the segment that the peer echoes was sent, to the millisecond; `None` for text out of order.
    pub(crate) echoed: Option<Instant>,
    /// The least round-trip time.
    pub(crate) least_rtt: Duration,
}

impl Rack {
    /// Steps 2 and 3: `range` has arrived.
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

    /// Returns `true` if no segment beyond the sequence number `start` is known to have been received, by ACK or SACK.
    pub(crate) fn has_nothing_beyond(&self, start: SeqNumber) -> bool {
        self.fack.is_none_or(|fack| start.is_at_or_after(fack))
    }

    /// What was retransmitted had not been lost.
    pub(crate) fn was_reordering(&mut self) {
        self.reordered = self.reordered.saturating_add(1);
    }

    /// Step 4: the peer got something twice, so the wait for reordering was too short.
    pub(crate) fn duplicate_arrived(&mut self, nxt: SeqNumber) {
        self.duplicates_reported = self.duplicates_reported.saturating_add(1);
        if self.round_ends.is_none() {
            self.round_ends = Some(nxt);
            self.more_quarters += 1;
            self.recoveries_left = RECOVERIES_TO_FORGET;
        }
    }

    /// How often [`Rack::duplicate_arrived`] was called.
    pub(crate) fn duplicates_reported(&self) -> u32 {
        self.duplicates_reported
    }

    /// How often reordering was seen.
    pub(crate) fn reordered(&self) -> u32 {
        self.reordered
    }

    /// Everything before `una` is acknowledged.
    pub(crate) fn acknowledged(&mut self, una: SeqNumber) {
        if self.round_ends.is_some_and(|end| una.is_at_or_after(end)) {
            self.round_ends = None;
        }
    }

    /// Step 4: a recovery has ended.
    pub(crate) fn recovery_ended(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
        if self.recoveries_left == 0 {
            self.more_quarters = 0;
        }
    }

    /// Step 4: RACK.reo_wnd. `has_evidence` says that recovery is under way or three segments have
    /// been overtaken.
    fn reordering_window(&self, has_evidence: bool, least: Duration, srtt: Duration) -> Duration {
        if self.reordered == 0 && has_evidence {
            return Duration::ZERO;
        }
        (least * (self.more_quarters + 1) / 4).min(srtt)
    }

    /// Step 5: marks as lost what must be; `Some` is when to look again.
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
        board.lose(|range| {
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

    /// RACK.rtt.
    fn rtt(&self) -> Duration {
        self.arrived_at.since(self.sent_at)
    }
}

/// RACK_sent_after: ties are broken by sequence number.
fn was_sent_after(a: (Instant, SeqNumber), b: (Instant, SeqNumber)) -> bool {
    a.0 > b.0 || (a.0 == b.0 && b.1.is_before(a.1))
}

/// Step 2: what was sent twice and answered too soon is answered for the first time it was sent.
fn is_of_the_original(range: &Sent, arrival: &Arrival) -> bool {
    let rtt = arrival.at.since(range.sent_at);
    let echoes_older = arrival.echoed.is_some_and(|at| at < super::to_millis(range.sent_at));
    echoes_older || rtt < arrival.least_rtt
}

/// RACK.reo_wnd_persist.
const RECOVERIES_TO_FORGET: u32 = 16;

#[cfg(test)]
mod tests;
