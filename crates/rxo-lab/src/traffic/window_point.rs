//! A sender's window at one instant.

use std::time::Duration;

/// How far a sender may go, and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPoint {
    /// Since the connection was begun.
    pub at: Duration,
    /// Its congestion window, in bytes of payload.
    pub cwnd_bytes: u64,
    /// What had been delivered by then, in bytes of payload, as far as the sender knows. Not what
    /// the application has read: it may wait for more before it reads.
    pub delivered_bytes: u64,
}
