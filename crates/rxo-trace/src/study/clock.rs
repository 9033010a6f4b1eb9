//! The capture's clock: the records' times, made to run forward only.
//!
//! It is separate because captures lie: packets of several processors stand a little out of order,
//! clocks are set back while capturing, and the next file may be older than the last. Engine and
//! polls need time that never goes back.

use rxo_frame::Instant;

/// Steps back up to this are packets that were written a little late; larger ones mean that the
/// capture's clock was set, or another capture begins.
const LATE_NS: u64 = 1_000_000_000;

/// Turns the times that records carry into times that never go back.
///
/// A step back of at most a second stands still until the records have caught up. A larger one
/// starts anew from here: what follows keeps its distances, so polls and holds go on as they
/// would.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// What is added to a record's time since the last step back.
    shift_ns: u64,
    now_ns: u64,
    steps_back: u64,
}

impl Clock {
    /// The time of a record that says it was seen at `at`.
    #[inline]
    pub(crate) fn advance(&mut self, at: Instant) -> Instant {
        let ns = at.as_nanos().saturating_add(self.shift_ns);
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
            self.shift_ns = self.shift_ns.saturating_add(back_ns);
        }
    }

    /// The time of the last record.
    pub(crate) const fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ns)
    }

    /// How often a record was older than the one before.
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
    fn no_times_break_it() {
        let (seen, _) = times(&[u64::MAX, 0, u64::MAX, 1, 0]);
        assert!(seen.iter().all(|ns| *ns == u64::MAX));
    }
}
