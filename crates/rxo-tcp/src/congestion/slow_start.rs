//! Slow start: the window grows by the bytes that are acknowledged (RFC 5681, section 3.1; RFC 3465), and
//! more slowly once the delay rises (HyStart++, RFC 9406).
//!
//! A peer that aggregates acknowledges many segments at once, and its acknowledgements say as much as those
//! of any other peer. So the limit L of RFC 3465 follows the aggregation that the peer has shown. What a
//! large acknowledgement adds to the window leaves later (`tokens.rs`).

use rxo_wire::SeqNumber;

use super::hystart::HyStart;
use super::{Acked, MAX_WINDOW_BYTES, Window};

/// The state of slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowStart {
    /// SND.NXT when the round trip began; `None` before the first.
    round_end: Option<SeqNumber>,
    /// The largest acknowledgement of this round trip, in bytes.
    largest: u32,
    /// The largest acknowledgement of the round trip before, in bytes.
    largest_before: u32,
    hystart: HyStart,
}

impl SlowStart {
    /// Grows `window`, which is below its threshold, and never beyond it. Returns by how many bytes.
    pub(super) fn grow(&mut self, window: &mut Window, acked: &Acked) -> u32 {
        let before = window.cwnd;
        let bytes = acked.bytes.min(self.limit(window.mss, acked)).min(window.ssthresh - before);
        self.largest = self.largest.max(acked.bytes);
        // RFC 9406, section 4.3: only the first slow start, which does not know a threshold.
        if window.ssthresh < MAX_WINDOW_BYTES {
            window.grow(bytes);
        } else {
            self.hystart.grow(window, bytes, acked.sample_ns);
        }
        self.begin_round_if_due(window, acked);
        window.cwnd - before
    }

    /// L: what one acknowledgement may count for, in bytes. As much as the aggregates of the peer may have
    /// grown to in a round trip; more is a sign of lost acknowledgements. One segment after a timeout,
    /// because then an acknowledgement covers what arrived long ago (RFC 3465, section 2.3).
    fn limit(&self, mss: u32, acked: &Acked) -> u32 {
        if acked.after_timeout {
            return mss;
        }
        let seen = self.largest.max(self.largest_before);
        seen.saturating_mul(2).max(LEAST_SEGMENTS * mss)
    }

    /// A round trip ends when what was sent at its begin is acknowledged (RFC 9406, section 4.2).
    fn begin_round_if_due(&mut self, window: &mut Window, acked: &Acked) {
        // An end beyond what was sent is of a round so long ago that sequence numbers have wrapped.
        let is_under_way = |end: SeqNumber| acked.ack.is_before(end) && !acked.nxt.is_before(end);
        if self.round_end.is_some_and(is_under_way) {
            return;
        }
        self.round_end = Some(acked.nxt);
        (self.largest_before, self.largest) = (self.largest, 0);
        self.hystart.begin_round(window);
    }
}

/// RFC 9406, section 4.3: L of a sender that does not pace, in segments.
const LEAST_SEGMENTS: u32 = 8;
