//! Watch: decides whether a process has been silent for too long.
//!
//! This module is separate, and uses no clock, so that it can be tested alone. Contract: time counts only while
//! this process itself ran and, if the worker was runnable, while the worker had a processor. So a worker is not
//! considered hung because the machine was suspended or overloaded, or because other programs change the network
//! configuration.

use std::time::Duration;

use rxo_frame::Instant;

use super::activity::Activity;

/// Measures the silence of one process: the time since the process last incremented its counter.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    limit: Duration,
    /// Extra time beyond the limit, for a process that is not stopped (SIGSTOP).
    grace: Duration,
    seen: u64,
    /// The time of silence outside of uninterruptible system calls. Time in which the process waited for a
    /// processor does not count.
    silent: Duration,
    /// The time of silence in uninterruptible system calls.
    locked: Duration,
    last: Instant,
    /// The state of the process at the last sample; `None` if the process was not silent then, or has ended.
    did: Option<Activity>,
}

/// The extra time for a worker in an uninterruptible system call. Such a worker mostly waits for the lock of
/// the kernel's network configuration (RTNL), which other programs hold for seconds while they remove
/// interfaces. Killing the worker would not end the call, and restoring everything would wait for the same
/// lock.
const LOCKED: Duration = Duration::from_secs(10);

/// Number of samples in the time for which a process may be silent.
const SAMPLES: u32 = 10;

impl Watch {
    /// Creates a watch of a process that begins at `now`, when the process's counter has the value `seen`.
    /// The process may be silent for `limit`.
    pub(super) const fn new(limit: Duration, seen: u64, now: Instant) -> Self {
        let (grace, silent, locked) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Self { limit, grace, seen, silent, locked, last: now, did: None }
    }

    /// Gives a process that is not stopped (SIGSTOP) `grace` beyond the limit, because such a process may
    /// continue by itself.
    pub(super) const fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Returns the time until the next sample.
    pub(super) fn pause(&self) -> Duration {
        self.limit / SAMPLES
    }

    /// Compares the process's counter with its value at the last sample; if the counter is unchanged, reads
    /// the state of the process with `activity`. Returns `true` if the process has been silent for the limit.
    pub(super) fn check(
        &mut self,
        turns: u64,
        now: Instant,
        activity: impl FnOnce() -> Option<Activity>,
    ) -> bool {
        // More time than that has passed only if this process did not run.
        let passed = now.since(self.last).min(2 * self.pause());
        self.last = now;
        if turns != self.seen {
            *self = Self { grace: self.grace, ..Self::new(self.limit, turns, now) };
            return false;
        }
        let before = std::mem::replace(&mut self.did, activity());
        let counted = self.did.as_ref().zip(before.as_ref());
        let counted = counted.map_or(passed, |(does, before)| does.worked_since(before, passed));
        let is = |test: fn(&Activity) -> bool| self.did.as_ref().is_some_and(test);
        if is(Activity::is_uninterruptible) {
            self.locked += passed;
        } else {
            self.silent += counted;
        }
        let grace = if is(Activity::is_stopped) { Duration::ZERO } else { self.grace };
        self.silent >= self.limit + grace || self.locked >= self.limit + LOCKED
    }

    /// Describes the state of the process at the last sample, for a message to the user.
    pub(super) fn words(&self) -> &'static str {
        self.did.as_ref().map_or("it is gone", Activity::words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(700);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn hangs() -> Option<Activity> {
        Some(Activity::with_threads(&[('S', 100)]))
    }

    #[test]
    fn a_worker_that_gets_no_processor_does_not_hang() {
        let mut watch = Watch::new(LIMIT, 5, at(0));
        let waits = || Some(Activity::with_threads(&[('R', 100)]));
        assert!((1..1_000).all(|n| !watch.check(5, at(n * 70), waits)));
        // The first sample, which has none before it, has counted in full.
        assert_eq!(looks_at_one_that_spins(&mut watch, 70), Some(9));
    }

    #[test]
    fn a_worker_that_gets_a_tenth_of_a_processor_is_waited_for_ten_times_longer() {
        let mut watch = Watch::new(LIMIT, 5, at(0));
        assert!(!watch.check(5, at(70_000), hangs));
        // The first sample, which has none before it, counts in full.
        assert_eq!(looks_at_one_that_spins(&mut watch, 7), Some(80));
    }

    /// Returns the number of samples until a worker is found that uses `ran_ms` of 70 ms of processor time.
    fn looks_at_one_that_spins(watch: &mut Watch, ran_ms: u64) -> Option<u64> {
        let spins = |n: u64| Some(Activity::with_threads(&[('R', 100 + n * ran_ms * 1_000_000)]));
        (1..1_000).find(|&n| watch.check(5, at(70_000 + n * 70), || spins(n)))
    }

    #[test]
    fn a_worker_that_is_silent_for_the_limit_is_found() {
        let mut watch = Watch::new(LIMIT, 5, at(0));
        assert!((1..10).all(|n| !watch.check(5, at(n * 70), hangs)));
        assert!(watch.check(5, at(700), hangs));
    }

    #[test]
    fn each_beat_begins_it_again() {
        let mut watch = Watch::new(LIMIT, 0, at(0));
        assert!((1..1_000).all(|n| !watch.check(n / 9, at(n * 70), hangs)));
    }

    #[test]
    fn one_that_is_stopped_is_waited_for_less() {
        let stopped = || Some(Activity::with_threads(&[('T', 100)]));
        let looks = |activity: fn() -> Option<Activity>| {
            let mut watch = Watch::new(LIMIT, 5, at(0)).with_grace(LIMIT);
            (1..).find(|&n| watch.check(5, at(n * 70), activity)).unwrap()
        };
        assert_eq!((looks(stopped), looks(hangs)), (10, 20));
    }

    #[test]
    fn one_that_waits_for_a_lock_of_the_kernel_is_waited_for_longer() {
        let locked = || Some(Activity::with_threads(&[('D', 100)]));
        let mut watch = Watch::new(LIMIT, 5, at(0));
        let looks = (1..).find(|&n| watch.check(5, at(n * 70), locked)).unwrap();
        assert_eq!(u128::from(looks) * 70, (LIMIT + LOCKED).as_millis().next_multiple_of(70));
        // The worker gets the lock, and then hangs in another call.
        let mut watch = Watch::new(LIMIT, 5, at(0));
        assert!((1..=100).all(|n| !watch.check(5, at(n * 70), locked)));
        assert!((1..10).all(|n| !watch.check(5, at(7_000 + n * 70), hangs)));
        assert!(watch.check(5, at(7_700), hangs));
    }

    #[test]
    fn a_machine_that_was_suspended_has_time_to_go_on() {
        let mut watch = Watch::new(LIMIT, 5, at(0));
        assert!(!watch.check(5, at(70), hangs));
        // An hour later both processes continue.
        assert!(!watch.check(5, at(3_600_000), hangs));
        assert!(!watch.check(6, at(3_600_070), hangs));
        assert!((1..10).all(|n| !watch.check(6, at(3_600_070 + n * 70), hangs)));
        assert!(watch.check(6, at(3_600_770), hangs));
    }
}
