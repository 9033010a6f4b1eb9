//! The number of bytes that the application reads in a round trip, and the receive buffer that this rate
//! needs.
//!
//! As in Linux's dynamic right-sizing (Fisk and Feng 2001), a window of twice the bytes read in a round trip
//! never limits a sender that doubles its rate in each round trip, and an application that reads little causes
//! no growth. An application that pauses and then reads everything counts as fast, because it reads all waiting
//! data in one round trip. Separate because this code only computes: it changes no state of the connection.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use crate::sequence::distance;

/// The rate at which the application reads, round trip by round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadRate {
    round: Round,
    /// The greatest number of bytes that the application read in one round trip.
    most_bytes: u32,
    /// The receive buffer that the application's rate of reading needs, in bytes; 0 if any size is large
    /// enough.
    need_bytes: u32,
}

/// A round trip in progress, with the state at its start.
#[derive(Clone, Copy, Debug)]
struct Round {
    at: Instant,
    read_at: SeqNumber,
    edge: SeqNumber,
    /// The shortest round-trip time seen during this round trip; `None` if none was seen.
    time: Option<Duration>,
}

/// The state of the receiving direction at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) now: Instant,
    /// The sequence number of the next byte that the application reads.
    pub(crate) read_at: SeqNumber,
    /// The right edge of the offered window.
    pub(crate) edge: SeqNumber,
    /// The round-trip time, or a longer time while the peer has nothing to send; `None` if it is not known.
    pub(crate) round_trip: Option<Duration>,
}

impl ReadRate {
    /// Begins to measure the rate at which the application reads. `initial_bytes` is the amount that any peer
    /// may send in its first round trip.
    pub(crate) fn new(progress: &Progress, initial_bytes: u32) -> Self {
        Self { round: Round::begin(progress), most_bytes: initial_bytes, need_bytes: 0 }
    }

    /// Ends the measurement of a round trip if it is over. Returns the receive buffer, in bytes, that the
    /// highest rate so far needs. The size is returned after every round trip, because a refused request may be
    /// granted later. Returns 0 if the application has never read more than `initial_bytes` in a round trip,
    /// and `None` if the round trip is not over.
    pub(crate) fn end_round(&mut self, progress: &Progress) -> Option<u32> {
        self.round.time = match (self.round.time, progress.round_trip) {
            (Some(least), Some(time)) => Some(least.min(time)),
            (least, time) => least.or(time),
        };
        if !self.round.is_complete(progress) {
            return None;
        }
        let read = distance(self.round.read_at, progress.read_at);
        self.round = Round::begin(progress);
        if read > self.most_bytes {
            self.need_bytes = self.need_bytes.max(self.need_for(read));
            self.most_bytes = read;
        }
        Some(self.need_bytes)
    }

    /// Returns the receive buffer, in bytes, that the application needs if it reads `read` bytes in a round
    /// trip, which must be a new maximum.
    fn need_for(&self, read: u32) -> u32 {
        // A sender in slow start doubles again before it sees the larger window.
        let growth = (read - self.most_bytes).min(self.most_bytes);
        let twice = u64::from(read) * 2;
        let ahead = twice * 2 * u64::from(growth) / u64::from(self.most_bytes.max(1));
        u32::try_from(twice + ahead).unwrap_or(u32::MAX)
    }
}

impl Round {
    fn begin(progress: &Progress) -> Self {
        let Progress { now, read_at, edge, round_trip } = *progress;
        Self { at: now, read_at, edge, time: round_trip }
    }

    /// Returns `true` if the round trip is over. If the round-trip time is unknown, the round trip counts as
    /// over after one second, or when the application has read the whole window that was offered at its start:
    /// the peer needs at least a round trip to fill this window.
    fn is_complete(&self, progress: &Progress) -> bool {
        match self.time {
            Some(time) => progress.now.since(self.at) >= time.max(SHORTEST),
            None => {
                let is_read = progress.read_at.is_at_or_after(self.edge);
                is_read || progress.now.since(self.at) >= LONGEST
            }
        }
    }
}

/// The shortest time over which the rate of reading is measured. Within a data centre, waking the application
/// takes longer than a round trip.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const INITIAL: u32 = 14_600;

    fn progress(at_ms: u64, read: u32, round_trip: Option<u64>) -> Progress {
        Progress {
            now: Instant::ZERO + Duration::from_millis(at_ms),
            read_at: SeqNumber(u32::MAX - 9_999) + read,
            edge: SeqNumber(u32::MAX - 9_999) + read + 65_535,
            round_trip: round_trip.map(Duration::from_millis),
        }
    }

    /// Each window is more than twice the bytes that arrive in the next round trip.
    #[test]
    fn the_window_stays_ahead_of_slow_start() {
        let mut rate = ReadRate::new(&progress(0, 0, Some(40)), INITIAL);
        let (mut read, mut sent, mut window) = (0, INITIAL, 65_535);
        for round in 1..9 {
            read += sent;
            let wanted = rate.end_round(&progress(round * 40, read, Some(40))).unwrap();
            window = window.max(wanted);
            sent *= 2;
            assert!(window > 2 * sent || sent < 32_768, "{window} bytes in round {round}");
        }
    }

    #[test]
    fn a_steady_rate_asks_for_the_same_each_time() {
        let mut rate = ReadRate::new(&progress(0, 0, Some(40)), INITIAL);
        let wanted =
            [1, 2, 3].map(|n| rate.end_round(&progress(n * 40, n as u32 * 20_000, Some(40))));
        assert_eq!(wanted, [Some(40_000 + 80_000 * 54 / 146); 3]);
    }

    #[test]
    fn a_round_lasts_a_round_trip() {
        let mut rate = ReadRate::new(&progress(0, 0, Some(40)), INITIAL);
        assert_eq!(rate.end_round(&progress(39, 200_000, Some(40))), None);
        assert!(rate.end_round(&progress(40, 200_000, Some(40))) > Some(400_000));
    }

    #[test]
    fn without_a_round_trip_time_the_window_is_the_clock() {
        let mut rate = ReadRate::new(&progress(0, 0, None), INITIAL);
        assert_eq!(rate.end_round(&progress(999, 65_534, None)), None);
        assert!(rate.end_round(&progress(999, 65_535, None)) > Some(2 * 65_535));
    }
}
