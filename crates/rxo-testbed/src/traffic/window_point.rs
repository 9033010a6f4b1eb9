//! A sender's window at one instant.

use std::time::Duration;

/// The congestion window and the progress of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPoint {
    /// Time since the start of the connection.
    pub at: Duration,
    /// The congestion window, in bytes of payload.
    pub cwnd_bytes: u64,
    /// Payload delivered by then as far as the sender knows, in bytes. The application may have read less.
    pub delivered_bytes: u64,
}
