//! Rate limits for challenge ACKs (RFC 5961, section 7) and for answers to a multicast group.

use rxo_frame::{Duration, Instant};

/// The rate limits of one connection. Connections share no limit, because a shared limit would reveal to an
/// attacker what other connections receive.
#[derive(Clone, Debug)]
pub(crate) struct Challenges {
    /// For each purpose ([`Answer`]), the time of the first answer in the current interval.
    window_starts: [Instant; 2],
    /// For each purpose ([`Answer`]), the number of answers requested in the current interval; 0 before the
    /// first interval.
    sent: [u8; 2],
}

/// The purpose of a rate-limited answer. Each purpose has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A challenge ACK. Its limit is separate from that of `Group`, so that a challenge ACK can always answer a
    /// reset.
    Challenge,
    /// An answer to segments that were sent to a multicast group and lie outside the window.
    Group,
}

impl Default for Challenges {
    fn default() -> Self {
        Self { window_starts: [Instant::ZERO; 2], sent: [0; 2] }
    }
}

impl Challenges {
    /// Returns `true` if an answer for this purpose may be sent at `now`, and counts it as requested.
    pub(crate) fn may_send(&mut self, answer: Answer, now: Instant) -> bool {
        let (start, sent) =
            (&mut self.window_starts[answer as usize], &mut self.sent[answer as usize]);
        if *sent == 0 || now.since(*start) >= WINDOW {
            (*start, *sent) = (now, 0);
        }
        *sent = sent.saturating_add(1);
        *sent <= MOST
    }
}

/// Maximum number of answers for each purpose in an interval of five seconds (RFC 5961, section 7).
const MOST: u8 = 10;
const WINDOW: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_ten_in_five_seconds_of_its_own() {
        let mut allowance = Challenges::default();
        let mut count = |answer, ms: u64| {
            let now = Instant::from_micros(1_000 * ms);
            (0..1_000).filter(|_| allowance.may_send(answer, now)).count()
        };
        assert_eq!((count(Answer::Group, 0), count(Answer::Group, 4_999)), (10, 0));
        assert_eq!((count(Answer::Challenge, 1), count(Answer::Challenge, 5_000)), (10, 0));
        assert_eq!((count(Answer::Group, 5_000), count(Answer::Challenge, 5_001)), (10, 10));
    }
}
