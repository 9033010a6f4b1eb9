//! Watch: decides whether a worker has been silent for too long.
//!
//! It is separate, and without a clock, so that it can be tested alone. Contract: only time in which this process itself
//! ran counts, and in which the worker was given a processor if it wanted one. A machine that was suspended or is
//! overloaded makes no worker look dead, and neither does one whose networks others change.

use std::time::Duration;

use rxo_frame::Instant;

use super::activity::Activity;

/// The silence of one worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    limit: Duration,
    /// How much longer one is waited for that is not stopped.
    patience: Duration,
    seen: u64,
    /// How long it has been silent, as far as that counts, and not in a call that no signal ends.
    silent: Duration,
    /// How long it has been silent in such calls.
    locked: Duration,
    last: Instant,
    /// What the worker did at the last look, if it was silent then.
    did: Option<Activity>,
}

/// How much longer a worker is waited for in a call that no signal ends: mostly for the lock of the kernel's network
/// configuration, which others hold for seconds while they remove interfaces. Killing it would not end the call, and
/// giving everything back would wait for the same lock.
const LOCKED: Duration = Duration::from_secs(10);

/// How many looks are made within the limit.
const LOOKS: u32 = 10;

impl Watch {
    /// A worker that is given `limit` from `now` on. It has beaten `seen` times.
    pub(super) const fn new(limit: Duration, seen: u64, now: Instant) -> Self {
        let (patience, silent, locked) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Self { limit, patience, seen, silent, locked, last: now, did: None }
    }

    /// Gives a worker that is not stopped (SIGSTOP) `patience` beyond the limit, because it may go on by itself.
    pub(super) const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The time to the next look.
    pub(super) fn pause(&self) -> Duration {
        self.limit / LOOKS
    }

    /// Looks at the count of beats, and if it is the same as before, at what the worker does. Returns whether the worker
    /// has been silent for the limit.
    pub(super) fn look(
        &mut self,
        beats: u64,
        now: Instant,
        activity: impl FnOnce() -> Option<Activity>,
    ) -> bool {
        // A longer time was not spent here: this process did not run.
        let passed = now.since(self.last).min(2 * self.pause());
        self.last = now;
        if beats != self.seen {
            *self = Self { patience: self.patience, ..Self::new(self.limit, beats, now) };
            return false;
        }
        let does = activity();
        let before = std::mem::replace(&mut self.did, does);
        let is_starved =
            does.zip(before).is_some_and(|(does, before)| does.is_starved_since(before));
        let is = |test: fn(Activity) -> bool| does.is_some_and(test);
        if is(Activity::is_uninterruptible) {
            self.locked += passed;
        } else if !is_starved {
            self.silent += passed;
        }
        let patience = if is(Activity::is_stopped) { Duration::ZERO } else { self.patience };
        self.silent >= self.limit + patience || self.locked >= self.limit + LOCKED
    }

    /// What the worker did at the last look, in words.
    pub(super) fn words(&self) -> &'static str {
        self.did.map_or("it is gone", Activity::words)
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
        Activity::parse("7 (rxo) S 1", "100 0 0")
    }

    #[test]
    fn a_worker_that_gets_no_processor_does_not_hang() {
        let mut watch = Watch::new(LIMIT, 5, at(0));
        let waits = || Activity::parse("7 (rxo) R 1", "100 0 0");
        assert!((1..1_000).all(|n| !watch.look(5, at(n * 70), waits)));
        let spins = |n: u64| Activity::parse("7 (rxo) R 1", &format!("{n} 0 0"));
        let found = (1..20).find(|&n| watch.look(5, at(70_000 + n * 70), || spins(200 + n)));
        assert!(found.is_some_and(|looks| looks <= 11), "{found:?}");
    }

    #[test]
    fn a_worker_that_is_silent_for_the_limit_is_found() {
        let mut watch = Watch::new(LIMIT, 5, at(0));
        assert!((1..10).all(|n| !watch.look(5, at(n * 70), hangs)));
        assert!(watch.look(5, at(700), hangs));
    }

    #[test]
    fn each_beat_begins_it_again() {
        let mut watch = Watch::new(LIMIT, 0, at(0));
        assert!((1..1_000).all(|n| !watch.look(n / 9, at(n * 70), hangs)));
    }

    #[test]
    fn one_that_is_stopped_is_waited_for_less() {
        let stopped = || Activity::parse("7 (rxo) T 1", "100 0 0");
        let looks = |activity: fn() -> Option<Activity>| {
            let mut watch = Watch::new(LIMIT, 5, at(0)).with_patience(LIMIT);
            (1..).find(|&n| watch.look(5, at(n * 70), activity)).unwrap()
        };
        assert_eq!((looks(stopped), looks(hangs)), (10, 20));
    }

    #[test]
    fn one_that_waits_for_a_lock_of_the_kernel_is_waited_for_longer() {
        let locked = || Activity::parse("7 (rxo) D 1", "100 0 0");
        let mut watch = Watch::new(LIMIT, 5, at(0));
        let looks = (1..).find(|&n| watch.look(5, at(n * 70), locked)).unwrap();
        assert_eq!(u128::from(looks) * 70, (LIMIT + LOCKED).as_millis().next_multiple_of(70));
        // It has the lock, and then hangs in another call.
        let mut watch = Watch::new(LIMIT, 5, at(0));
        assert!((1..=100).all(|n| !watch.look(5, at(n * 70), locked)));
        assert!((1..10).all(|n| !watch.look(5, at(7_000 + n * 70), hangs)));
        assert!(watch.look(5, at(7_700), hangs));
    }

    #[test]
    fn a_machine_that_was_suspended_has_time_to_go_on() {
        let mut watch = Watch::new(LIMIT, 5, at(0));
        assert!(!watch.look(5, at(70), hangs));
        // An hour later both go on.
        assert!(!watch.look(5, at(3_600_000), hangs));
        assert!(!watch.look(6, at(3_600_070), hangs));
        assert!((1..10).all(|n| !watch.look(6, at(3_600_070 + n * 70), hangs)));
        assert!(watch.look(6, at(3_600_770), hangs));
    }
}
