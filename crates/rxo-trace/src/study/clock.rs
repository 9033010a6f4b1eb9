//! The clock of a capture, which converts the times of records to times that never go back.
//!
//! The times in captures are unreliable: packets of several processors are slightly out of order, clocks are
//! set back during a capture, and the next file may be older than the previous one. The engines and polls need
//! time that never goes back.

use rxo_frame::Instant;
use serde::{Deserialize, Serialize};

/// The longest step back, in nanoseconds, after which a packet counts as written late. A longer step back means
/// that the clock was set, or that another capture begins.
const LATE_NS: u64 = 1_000_000_000;

/// A clock that converts the times of records to times that never go back.
///
/// After a step back of at most a second, the time of the clock stays constant until the times of records
/// exceed it again. After a larger step, the clock continues from its current time: the time differences
/// between later records stay correct, so polls and holds continue normally. A capture that does not continue
/// the previous one is treated like a larger step: see [`Clock::rejoin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clock {
    /// The number of nanoseconds that is added to record times since the last restart.
    shift_ns: i64,
    now_ns: u64,
    steps_back: u64,
    /// The number of steps back that were longer than [`LATE_NS`].
    sets: u64,
}

impl Clock {
    /// Returns the time on this clock of a record with the time `at`, which becomes the current time.
    #[inline]
    pub(crate) fn advance(&mut self, at: Instant) -> Instant {
        let ns = self.shifted(at);
        if ns >= self.now_ns {
            self.now_ns = ns;
        } else {
            self.step_back(ns);
        }
        Instant::from_nanos(self.now_ns)
    }

    #[cold]
    fn step_back(&mut self, ns: u64) {
        self.steps_back += 1;
        let back_ns = self.now_ns - ns;
        if back_ns > LATE_NS {
            self.sets += 1;
            self.shift_ns = self.shift_ns.saturating_add_unsigned(back_ns);
        }
    }

    #[inline]
    const fn shifted(&self, at: Instant) -> u64 {
        at.as_nanos().saturating_add_signed(self.shift_ns)
    }

    /// Converts the instant `at` of this clock to the time of records.
    #[inline]
    pub(super) const fn of_records(&self, at: Instant) -> Instant {
        Instant::from_nanos(at.as_nanos().saturating_add_signed(self.shift_ns.saturating_neg()))
    }

    /// Returns the time from the last record to a record with the time `at`, in nanoseconds; `None` if `at`
    /// is earlier.
    pub(super) const fn gap_ns(&self, at: Instant) -> Option<u64> {
        self.shifted(at).checked_sub(self.now_ns)
    }

    /// Returns `true` if a capture that begins at `at` does not continue the previous capture: its first record
    /// is older than the last record, or more than a second newer.
    pub(super) fn is_far(&self, at: Instant) -> bool {
        self.gap_ns(at).is_none_or(|gap_ns| gap_ns > LATE_NS)
    }

    /// Restarts the clock so that the time `at` of a record is converted to the current time of the clock.
    pub(super) const fn rejoin(&mut self, at: Instant) {
        let (now_ns, at_ns) = (self.now_ns, at.as_nanos());
        self.shift_ns = 0_i64.saturating_add_unsigned(now_ns.saturating_sub(at_ns));
        self.shift_ns = self.shift_ns.saturating_sub_unsigned(at_ns.saturating_sub(now_ns));
    }

    /// Returns the current time of this clock, which is the corrected time of the last record.
    #[inline]
    pub(crate) const fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ns)
    }

    /// Returns the number of records that were more than a second older than the record before them.
    pub(super) const fn sets(&self) -> u64 {
        self.sets
    }

    /// Returns the number of records that were older than the record before them.
    pub(super) const fn steps_back(&self) -> u64 {
        self.steps_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(of: &[u64]) -> (Vec<u64>, Clock) {
        let mut clock = Clock::default();
        let times =
            of.iter().map(|ns| clock.advance(Instant::from_nanos(*ns)).as_nanos()).collect();
        (times, clock)
    }

    #[test]
    fn time_that_runs_forward_is_left_as_it_is() {
        let (seen, clock) = times(&[100, 100, 250]);
        assert_eq!(seen, [100, 100, 250]);
        assert_eq!((clock.now().as_nanos(), clock.steps_back()), (250, 0));
    }

    #[test]
    fn a_late_packet_stands_still() {
        let (seen, clock) = times(&[100, 300, 200, 400]);
        assert_eq!(seen, [100, 300, 300, 400]);
        assert_eq!(clock.steps_back(), 1);
    }

    #[test]
    fn a_clock_set_back_goes_on_from_here() {
        const DAY: u64 = 86_400_000_000_000;
        let (seen, _) = times(&[DAY, DAY + 10, 5, 25]);
        assert_eq!(seen, [DAY, DAY + 10, DAY + 10, DAY + 30]);
    }

    #[test]
    fn another_capture_goes_on_from_here_whenever_it_was_taken() {
        const YEAR: u64 = 31_536_000_000_000_000;
        for other in [5 * YEAR, 90 * YEAR] {
            let (_, mut clock) = times(&[50 * YEAR, 50 * YEAR + 7]);
            assert!(clock.is_far(Instant::from_nanos(other)));
            assert!(!clock.is_far(Instant::from_nanos(50 * YEAR + 1_000)));
            clock.rejoin(Instant::from_nanos(other));
            let next = clock.advance(Instant::from_nanos(other + 3));
            assert_eq!((next.as_nanos(), clock.steps_back()), (50 * YEAR + 10, 0));
        }
    }

    #[test]
    fn no_times_break_it() {
        let (seen, _) = times(&[u64::MAX, 0, u64::MAX, 1, 0]);
        assert!(seen.iter().all(|ns| *ns == u64::MAX));
    }
}
