//! Slow start: the window grows by the acknowledged bytes (RFC 5681, section 3.1; RFC 3465), and more slowly
//! once the delay rises (HyStart++, RFC 9406).
//!
//! A peer that aggregates segments acknowledges many of them at once, and such an ACK is as
//! reliable as any other. Therefore the limit L of RFC 3465 follows the size of the peer's aggregates. The
//! window growth by a large ACK becomes usable a little later (`tokens.rs`).

use rxo_wire::SeqNumber;

use super::hystart::HyStart;
use super::{Acked, MAX_WINDOW_BYTES, Window};

/// The state of slow start for one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowStart {
    /// SND.NXT when the current round trip began; `None` before the first.
    round_end: Option<SeqNumber>,
    /// The largest number of bytes that one ACK has acknowledged in this round trip.
    largest: u32,
    /// The largest number of bytes that one ACK acknowledged in the previous round trip.
    largest_before: u32,
    hystart: HyStart,
}

impl SlowStart {
    /// Grows `window`, at most to its threshold, and returns the growth in bytes. The window must be below
    /// the threshold.
    pub(super) fn grow(&mut self, window: &mut Window, acked: &Acked) -> u32 {
        let before = window.cwnd;
        let bytes = acked.bytes.min(self.limit(window.mss, acked)).min(window.ssthresh - before);
        self.largest = self.largest.max(acked.bytes);
        // HyStart++ covers only the first slow start, when the threshold is not known (RFC 9406, section
        // 4.3).
        if window.ssthresh < MAX_WINDOW_BYTES {
            window.grow(bytes);
        } else {
            self.hystart.grow(window, bytes, acked.sample_ns);
        }
        self.begin_round_if_due(window, acked);
        window.cwnd - before
    }

    /// Returns L: the maximum number of bytes that one ACK may count for. L is twice the largest
    /// aggregate of the last two round trips, because larger ACKs are a sign that others were lost.
    /// After a timeout L is one segment, because an ACK then covers data that arrived long ago (RFC
    /// 3465, section 2.3).
    fn limit(&self, mss: u32, acked: &Acked) -> u32 {
        if acked.after_timeout {
            return mss;
        }
        let seen = self.largest.max(self.largest_before);
        seen.saturating_mul(2).max(LEAST_SEGMENTS * mss)
    }

    /// Begins a new round trip once the data sent at the start of the last one is acknowledged (RFC 9406,
    /// section 4.2).
    fn begin_round_if_due(&mut self, window: &mut Window, acked: &Acked) {
        // An end beyond SND.NXT is so old that sequence numbers have wrapped.
        let is_under_way = |end: SeqNumber| acked.ack.is_before(end) && !acked.nxt.is_before(end);
        if self.round_end.is_some_and(is_under_way) {
            return;
        }
        self.round_end = Some(acked.nxt);
        (self.largest_before, self.largest) = (self.largest, 0);
        self.hystart.begin_round(window);
    }
}

/// RFC 9406's L: the number of segments by which one ACK may grow the window in slow start, for a sender that does
/// not pace (section 4.3).
const LEAST_SEGMENTS: u32 = 8;
