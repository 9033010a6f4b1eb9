//! Limits on sending that come from the device. Only the owner of a connection knows these limits.
//!
//! Separate from `plan.rs`, which applies the windows. Contract: there are no limits until the owner sets
//! them.

use rxo_frame::Instant;

use super::Connection;
use super::plan::Plan;
use crate::send::Held;

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns `true` if [`Connection::poll_transmit`] would send data or a FIN next. All other segments are
    /// small: ACKs, a SYN, a reset.
    #[must_use]
    pub fn is_text_next(&self) -> bool {
        matches!(self.plan(), Ok(Plan::Text(..)))
    }

    /// Records that data waits because the device's queue is full. The owner calls this method when it stops
    /// calling [`Connection::poll_transmit`] although data could be sent. While data waits, the congestion
    /// window does not grow, because it does not limit the sender (RFC 9438, section 5.8). Timers run as usual.
    pub fn hold_back(&mut self, now: Instant) {
        self.note_held(Held::Nothing, now);
    }

    /// Limits GSO frames to `bytes` of data from now on. The limit is at least one segment and at most
    /// [`Config::large_send_bytes`](crate::Config::large_send_bytes), its initial value.
    #[inline]
    pub fn limit_large_sends(&mut self, bytes: u32) {
        self.large_send_bytes = bytes.min(self.config.large_send_bytes);
    }
}
