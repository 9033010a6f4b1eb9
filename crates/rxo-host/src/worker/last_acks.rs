//! Estimates the time for which peers may still retransmit a FIN because the ACK of the FIN was lost.
//!
//! The estimate is shorter than TIME-WAIT, which lasts a minute because old segments may arrive. A host that
//! stops needs to keep running only while a retransmitted FIN is likely. The module is pure arithmetic on
//! times.

use rxo_frame::{Duration, Instant};

/// The time until which a retransmitted FIN is likely, over all connections that closed first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastAcks {
    until: Option<Instant>,
}

/// The kind of peer whose FIN was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closer {
    /// The peer of an ordinary connection.
    Peer,
    /// A receiver of a cast. Among hundreds of receivers, some lose their FIN and then also the ACK of the
    /// retransmitted FIN. The timeout of the next retransmission is then twice as long.
    Member,
}

impl LastAcks {
    /// Records the first ACK of a FIN. `timeout` is the connection's retransmission timeout, which is close
    /// to the peer's.
    pub(super) fn sent(&mut self, now: Instant, timeout: Duration, closer: Closer) {
        let timeouts = match closer {
            Closer::Peer => 2,
            Closer::Member => 5,
        };
        self.extend(now + (timeout.max(LEAST) * timeouts).min(MOST));
    }

    /// Records the ACK of a retransmitted FIN. The peer waits longer before its next retransmission.
    pub(super) fn repeated(&mut self, now: Instant) {
        self.extend(now + AFTER_REPETITION);
    }

    /// Returns the time for which a retransmitted FIN is still likely; zero if it is unlikely.
    pub(super) fn left(&self, now: Instant) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.since(now))
    }

    fn extend(&mut self, until: Instant) {
        self.until = self.until.max(Some(until));
    }
}

/// The shortest retransmission timeout to assume for a peer: the minimum of Linux.
const LEAST: Duration = Duration::from_millis(200);
const AFTER_REPETITION: Duration = Duration::from_secs(1);
/// The longest wait for a retransmitted FIN. The limit applies to connections that could not measure their
/// path, and whose timeout is therefore a second or more.
const MOST: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn ms(time: Duration) -> u128 {
        time.as_millis()
    }

    #[test]
    fn a_fin_is_expected_again_for_two_timeouts() {
        let mut acks = LastAcks::default();
        assert_eq!(ms(acks.left(at(7))), 0, "nothing has closed");
        acks.sent(at(1_000), Duration::from_millis(300), Closer::Peer);
        let left = [1_000, 1_400, 1_600, 5_000].map(|now| ms(acks.left(at(now))));
        assert_eq!(left, [600, 200, 0, 0]);
    }

    #[test]
    fn the_least_and_the_most_are_bounded() {
        let of = |timeout, closer| {
            let mut acks = LastAcks::default();
            acks.sent(at(0), Duration::from_millis(timeout), closer);
            ms(acks.left(at(0)))
        };
        assert_eq!((of(1, Closer::Peer), of(1, Closer::Member)), (400, 1_000));
        assert_eq!((of(60_000, Closer::Peer), of(60_000, Closer::Member)), (3_000, 3_000));
    }

    #[test]
    fn the_last_of_all_connections_counts() {
        let mut acks = LastAcks::default();
        acks.sent(at(0), Duration::from_millis(1_000), Closer::Peer);
        acks.sent(at(100), Duration::from_millis(200), Closer::Peer);
        assert_eq!(ms(acks.left(at(100))), 1_900);
        acks.repeated(at(1_500));
        assert_eq!(ms(acks.left(at(1_500))), 1_000);
    }
}
