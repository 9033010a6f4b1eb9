//! Work clock: measures how long the worker has run since an instant.
//!
//! This module is separate because it distinguishes overload from a core that other processes use. A frame is
//! late in both cases, but only in overload was the worker running while the frame waited. The kernel's count
//! of time on the run queue cannot be used: it omits the time of a stopped process or a paused machine.
//!
//! The computation has no side effects; times are arguments. Contract: the result is never more than the time
//! that passed, and exceeds the time that the worker ran by at most [`SPACING`]. After construction it
//! allocates nothing.

use std::collections::VecDeque;
use std::time::Duration;

use rxo_frame::Instant;

/// The minimum time between two samples, because reading the processor time is a system call.
pub(super) const SPACING: Duration = Duration::from_millis(1);

/// The number of samples that are kept, which cover at least a quarter of a second. For a frame that waited longer,
/// only the work in that time counts.
const SAMPLES: usize = 256;

/// The last samples of the processor time of the worker's thread.
#[derive(Clone, Debug)]
pub(super) struct WorkClock {
    /// The samples of processor time, oldest first.
    samples: VecDeque<Sample>,
    /// The time before the newest sample, divided into time in which the worker ran and time in which it did
    /// not; `None` once this value was read.
    idle: Option<Idle>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    cpu: Duration,
}

/// The time between the last two samples, divided into the time in which the worker ran and the time in which
/// it did not run.
#[derive(Clone, Copy, Debug)]
struct Idle {
    worked: Duration,
    not_worked: Duration,
}

impl WorkClock {
    pub(super) fn new() -> Self {
        Self { samples: VecDeque::with_capacity(SAMPLES), idle: None }
    }

    /// Records the time `now`. Takes a sample with `cpu_time` if one is due.
    pub(super) fn note(&mut self, now: Instant, cpu_time: impl FnOnce() -> Duration) {
        let last = self.samples.back().copied();
        if last.is_some_and(|last| now < last.at + SPACING) {
            return;
        }
        let sample = Sample { at: now, cpu: cpu_time() };
        self.idle = last.map(|last| {
            let worked = sample.worked_since(last);
            Idle { worked, not_worked: now.since(last.at).saturating_sub(worked) }
        });
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Returns `true` if the worker did not run for most of the time between the last two samples; `None` if
    /// this turn took no sample, or if the result was already taken.
    pub(super) fn take_was_away(&mut self) -> Option<bool> {
        self.idle.take().map(|idle| idle.not_worked > idle.worked)
    }

    /// Returns the time for which a frame that arrived at `then` has waited until `now` because of the worker's
    /// work: the time in which the worker ran, or zero if the worker did not run for most of the wait.
    pub(super) fn wait_by_work(&self, then: Instant, now: Instant) -> Duration {
        let worked = self.worked(then, now);
        if worked * 2 < now.since(then) { Duration::ZERO } else { worked }
    }

    /// Returns the time for which the worker ran between `then` and `now`; the whole time without a sample.
    fn worked(&self, then: Instant, now: Instant) -> Duration {
        let Some(last) = self.samples.back() else { return now.since(then) };
        if last.at <= then {
            return now.since(then);
        }
        // The time since the last sample is too short to have been sampled.
        let mut worked = now.since(last.at);
        let newest_first = self.samples.iter().rev();
        for (newer, older) in newest_first.clone().zip(newest_first.skip(1)) {
            if older.at <= then {
                return worked + newer.worked_since(*older).min(newer.at.since(then));
            }
            worked += newer.worked_since(*older);
        }
        worked
    }
}

impl Sample {
    /// Returns the time for which the worker ran between two samples.
    fn worked_since(self, earlier: Self) -> Duration {
        self.cpu.saturating_sub(earlier.cpu).min(self.at.since(earlier.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::from_micros(ms * 1_000)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Creates a clock with the samples `samples`, each a time and a processor time in milliseconds.
    fn clock(samples: &[(u64, u64)]) -> WorkClock {
        let mut clock = WorkClock::new();
        samples.iter().for_each(|&(at, cpu)| clock.note(at_ms(at), || ms(cpu)));
        clock
    }

    #[test]
    fn only_time_in_which_the_worker_ran_counts() {
        let clock = clock(&[(0, 0), (10, 10), (40, 12), (50, 22)]);
        let rows = [
            ((50, 50), 0),
            ((45, 50), 5),
            ((40, 50), 10),
            // The worker ran for 2 of these 30 ms, perhaps at their end.
            ((30, 50), 12),
            ((39, 50), 11),
            ((10, 50), 12),
            ((5, 50), 17),
            ((0, 50), 22),
            // Before the first sample the worker had not started.
            ((0, 50), 22),
        ];
        for ((then, now), worked) in rows {
            assert_eq!(clock.worked(at_ms(then), at_ms(now)), ms(worked), "{then} to {now}");
        }
    }

    #[test]
    fn a_wait_is_because_of_work_if_the_worker_ran_for_half_of_it() {
        let clock = clock(&[(0, 0), (10, 10), (40, 12), (50, 22)]);
        for (then, waited) in [(50, 0), (45, 5), (40, 10), (30, 12), (25, 0), (10, 0), (0, 0)] {
            assert_eq!(clock.wait_by_work(at_ms(then), at_ms(50)), ms(waited), "{then}");
        }
    }

    #[test]
    fn without_samples_all_time_counts() {
        assert_eq!(WorkClock::new().worked(at_ms(10), at_ms(30)), ms(20));
        assert_eq!(clock(&[(0, 0)]).worked(at_ms(10), at_ms(11)), ms(1));
    }

    #[test]
    fn samples_are_apart_and_few() {
        let mut clock = WorkClock::new();
        let mut calls = 0;
        for us in 0..1_000_000 {
            clock.note(Instant::from_micros(us), || {
                calls += 1;
                Duration::from_micros(us)
            });
        }
        assert_eq!((calls, clock.samples.len()), (1_000, SAMPLES));
        assert_eq!(clock.worked(Instant::ZERO, at_ms(1_000)), ms(256));
    }

    #[test]
    fn a_worker_that_ran_for_less_than_half_of_the_time_was_away() {
        let mut clock = clock(&[(0, 0)]);
        assert_eq!(clock.take_was_away(), None);
        for (at, cpu, was_away) in [(10, 10, false), (30, 19, true), (40, 24, false)] {
            clock.note(at_ms(at), || ms(cpu));
            assert_eq!(clock.take_was_away(), Some(was_away), "{at}");
            assert_eq!(clock.take_was_away(), None);
        }
    }
}
