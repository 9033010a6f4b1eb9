//! The congestion window of a sender at one instant.

use std::time::Duration;

/// The congestion window and the progress of a sender at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPoint {
    /// The time since the start of the connection.
    pub at: Duration,
    /// The congestion window of the sender, in bytes of payload.
    pub cwnd_bytes: u64,
    /// The payload that the peer has acknowledged so far, in bytes. The receiving application may have read
    /// less.
    pub delivered_bytes: u64,
}
