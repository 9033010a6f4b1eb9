//! What the device has room for, which only the owner of a connection knows.
//!
//! Separate from `plan.rs`, which knows the windows. Contract: without a call nothing is limited.

use rxo_frame::Instant;

use super::Connection;
use super::plan::Plan;
use crate::send::Held;

impl<B: AsRef<[u8]>> Connection<B> {
    /// Whether [`Connection::poll_transmit`] would send text next, or a FIN. What it would send otherwise is small:
    /// acknowledgements, a SYN, a reset.
    #[must_use]
    pub fn is_text_next(&self) -> bool {
        matches!(self.plan(), Ok(Plan::Text(..)))
    }

    /// Takes note that text waits for the device. Call it in place of the last [`Connection::poll_transmit`], the one that
    /// would return `None`. The congestion window does not grow meanwhile, because it is not what limits the sender
    /// (RFC 9438, section 5.8), and timers run as ever.
    pub fn hold_back(&mut self, now: Instant) {
        self.note_held(Held::Nothing, now);
    }

    /// Limits GSO frames to `bytes` of text from now on, but never to less than a segment or to more than
    /// [`Config::large_send_bytes`](crate::Config::large_send_bytes), which is the limit at first.
    #[inline]
    pub fn limit_large_sends(&mut self, bytes: u32) {
        self.large_send_bytes = bytes.min(self.config.large_send_bytes);
    }
}
