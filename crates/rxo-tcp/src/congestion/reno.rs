//! Reno congestion control (RFC 5681).

use super::{Acked, Window};

/// The state of Reno: congestion avoidance adds one segment each round trip; a loss halves the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reno {
    /// Number of bytes acknowledged since the window last grew.
    acked_bytes: u32,
}

impl Reno {
    /// Grows the window by one segment for each window of acknowledged bytes (RFC 5681, section 3.1).
    pub(super) fn avoid(&mut self, window: &mut Window, acked: &Acked) {
        self.acked_bytes = self.acked_bytes.saturating_add(acked.bytes);
        if self.acked_bytes >= window.cwnd {
            self.acked_bytes -= window.cwnd;
            window.grow(window.mss);
        }
    }

    /// Returns half of the bytes in flight as the new threshold, at least two segments (RFC 5681, section
    /// 3.1, equation 4).
    pub(super) fn threshold(&mut self, window: &Window, in_flight: u32) -> u32 {
        self.acked_bytes = 0;
        (in_flight / 2).max(2 * window.mss)
    }
}
