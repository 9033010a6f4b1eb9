//! Slack: decides when the memory of departed clients is returned to the system.
//!
//! This module is separate because it needs only a count and a time. While clients come and go, new clients
//! reuse the memory of departed clients. Once the count has stayed below half of its maximum for a while, the
//! free memory is returned; so a shrinking crowd costs only a few calls.

use std::time::{Duration, Instant};

/// Decides when memory is returned. Stores the largest number of clients since memory was last returned, and
/// the time since which the number of clients is low.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slack {
    most: usize,
    /// The time since which there are at most half as many clients as the largest number; `None` if there are
    /// more.
    since: Option<Instant>,
}

impl Slack {
    /// Records that there are `clients` clients at `now`. Returns `true` once their number has been so low for so long
    /// that memory should be returned to the system.
    pub(super) fn is_due(&mut self, clients: usize, now: Instant) -> bool {
        self.most = self.most.max(clients);
        if self.most < LEAST || clients > self.most / 2 {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let is_due = now.saturating_duration_since(since) >= REST;
        if is_due {
            *self = Self { most: clients, since: None };
        }
        is_due
    }
}

/// The number of clients that must have been reached since memory was last returned. With fewer clients,
/// returning memory is not worth the effort.
const LEAST: usize = 64;
/// Time for which the number of clients must have been low: longer than the host keeps the buffers of idle connections.
const REST: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_half_have_been_gone_for_a_while() {
        let (mut slack, begin) = (Slack::default(), Instant::now());
        let mut at = |second, clients| slack.is_due(clients, begin + Duration::from_secs(second));
        assert!(!at(0, 1_000) && !at(10, 501), "most are there");
        assert!(!at(11, 500) && !at(13, 400));
        assert!(!at(13, 600), "they come back");
        assert!(!at(14, 300) && !at(16, 0) && at(17, 0));
        assert!(!at(18, 0) && !at(100, 0), "once");
        assert!(!at(101, 63) && !at(102, 0) && !at(200, 0), "a few are not worth it");
    }

    #[test]
    fn a_crowd_that_dwindles_costs_a_few_calls() {
        let (mut slack, begin) = (Slack::default(), Instant::now());
        let clients = (0..10_000_usize).rev();
        let times = (0..).map(|second| begin + Duration::from_secs(second));
        let calls = clients.zip(times).filter(|&(clients, now)| slack.is_due(clients, now)).count();
        assert!((5..10).contains(&calls), "{calls}");
    }
}
