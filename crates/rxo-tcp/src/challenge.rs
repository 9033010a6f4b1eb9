//! How many challenge ACKs may be sent (RFC 5961, section 7), and answers to a group.

use rxo_frame::{Duration, Instant};

/// The allowance of one connection. Each connection has its own: a shared one would tell an attacker
/// what other connections receive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Challenges {
    /// When the first challenge ACK of the current interval was sent.
    window_start: Option<Instant>,
    sent: u32,
}

impl Challenges {
    /// Whether another may be sent at `now`. Counts it if so.
    pub(crate) fn may_send(&mut self, now: Instant) -> bool {
        if self.window_start.is_none_or(|start| now.since(start) >= WINDOW) {
            (self.window_start, self.sent) = (Some(now), 0);
        }
        self.sent += 1;
        self.sent <= MOST
    }
}

/// RFC 5961, section 7: ten in any five seconds.
const MOST: u32 = 10;
const WINDOW: Duration = Duration::from_secs(5);
