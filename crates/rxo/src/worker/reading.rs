//! Reading: all counters of a worker at one instant, with their times.

use std::time::Duration;

use rxo_ack::SplitCounters;
use rxo_coalesce::Counters;
use rxo_device::{SinkCounters, SourceCounters};
use rxo_frame::Instant;

use super::{Coalescing, Imbalance, Misfit, WorkerConfig, fit};

rxo_frame::counters! {
    /// All counters of a worker at one instant. The counters are totals since the start; [`Reading::since`]
    /// returns those of an interval.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Reading {
        /// The time since the worker began to run.
        pub elapsed: Duration,
        /// The processor time of the worker's thread since it began to run, user and system together.
        pub cpu: Duration,
        /// Counters of the nic's source.
        pub nic_in: SourceCounters,
        /// Counters of the host's sink.
        pub host_out: SinkCounters,
        /// Counters of the host's source.
        pub host_in: SourceCounters,
        /// Counters of the nic's sink.
        pub nic_out: SinkCounters,
        /// Counters of the engine.
        pub engine: Counters,
        /// Frames from the nic that were dropped because more arrived than the worker could process.
        pub overload: u64,
        /// Frames among the `ring_drops` of `nic_in` that were lost while the worker's thread did not run,
        /// because other threads used its core or the thread was stopped.
        pub not_scheduled: u64,
        /// The number of frames that the system counts as arrived at the nic, but `nic_in` counts neither as
        /// received nor as lost; computed for each report while the source is empty. 0 if the system does not
        /// count arrivals. Any other number is a loss that no counter shows.
        pub unaccounted: u64,
        /// Packets that were written to the nic, but that the system counts neither as sent nor as dropped;
        /// computed for each report while no packet waits to be sent. 0 if the system does not count the
        /// packets that leave the nic. Too low if other programs send through the nic.
        pub unsent: u64,
        /// Frames from guests that waited because of a `rate`, or that were forwarded to fewer ports than their
        /// address requires because of a `storm`, both set in a [`Budget`](super::Budget). 0 without a switch.
        pub over_budget: u64,
        /// The number of times that a guest's thread did not run its loop for 5 ms although frames were
        /// waiting for the guest. 0 without threads.
        pub stalls: u64,
        /// Frames by which the counters of the worker's stages disagree; compared at every report and at the
        /// end.
        pub imbalance: Imbalance,
        /// The state of coalescing. The difference of two readings, or their sum, has the state of the later
        /// reading.
        pub coalescing: Coalescing,
        /// Counters of ACK splitting; `None` unless [`WorkerConfig::ack_split`] is set.
        ///
        /// [`WorkerConfig::ack_split`]: super::WorkerConfig::ack_split
        pub split: Option<SplitCounters>,
    }
}

/// The times at which the worker started, last read the clock, and must report next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    started_at: Instant,
    now: Instant,
    cpu_at_start: Duration,
    cpu: Duration,
    reports: Every,
    looks: Every,
}

/// An event that is due at regular intervals, such as a report.
#[derive(Clone, Copy, Debug, Default)]
struct Every {
    time: Option<Duration>,
    at: Option<Instant>,
}

impl Every {
    fn new(time: Option<Duration>, now: Instant) -> Self {
        Self { time, at: time.map(|time| now + time) }
    }

    /// Returns `true` if the event is due. The event is then due again one interval later; missed intervals are
    /// skipped.
    fn is_due(&mut self, now: Instant) -> bool {
        let (Some(time), Some(at)) = (self.time, self.at.filter(|at| now >= *at)) else {
            return false;
        };
        let next = at + time;
        self.at = Some(if next > now { next } else { now + time });
        true
    }
}

/// The reason for calling the observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Only a check of the devices for notices is due.
    Look,
    /// A report of the counters is due.
    Report,
}

impl Times {
    pub(super) fn started(now: Instant, cpu: Duration, config: &WorkerConfig) -> Self {
        Self {
            started_at: now,
            now,
            cpu_at_start: cpu,
            cpu,
            reports: Every::new(config.report_every, now),
            looks: Every::new(config.look_every, now),
        }
    }

    /// Changes the time between two reports. The next report is due after the new time.
    ///
    /// # Errors
    /// If the time is too short.
    pub(super) fn report_every(&mut self, time: Option<Duration>) -> Result<(), Misfit> {
        fit::check_report(time)?;
        self.reports = Every::new(time, self.now);
        Ok(())
    }

    pub(super) const fn set(&mut self, now: Instant, cpu: Duration) {
        (self.now, self.cpu) = (now, cpu);
    }

    /// Returns the time that was last recorded, by [`set`](Self::set).
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.now.since(self.started_at)
    }

    pub(super) const fn cpu(&self) -> Duration {
        self.cpu.saturating_sub(self.cpu_at_start)
    }

    /// Returns the instant of the next call of the observer; `None` if no call is planned.
    pub(super) fn due_at(&self) -> Option<Instant> {
        [self.reports.at, self.looks.at].into_iter().flatten().min()
    }

    /// Returns the reason for which the observer must be called now; `None` if there is none.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Due> {
        let (reports, looks) = (self.reports.is_due(now), self.looks.is_due(now));
        if reports { Some(Due::Report) } else { looks.then_some(Due::Look) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a reading in which no two counters are equal.
    fn reading(n: u64) -> Reading {
        let source =
            |n| SourceCounters { frames: 9 * n, bytes: 500 * n, ..SourceCounters::default() };
        let sink = |n| SinkCounters { packets: 2 * n, dropped: n, ..SinkCounters::default() };
        let mut engine = Counters::default();
        (engine.aggregates, engine.aggregated_segments) = (2 * n, 8 * n);
        engine.segments_per_aggregate.record(4);
        let mut split = SplitCounters::default();
        (split.acks, split.inserted) = (n, 5 * n);
        Reading {
            elapsed: Duration::from_secs(n),
            cpu: Duration::from_millis(n),
            nic_in: source(n),
            host_out: sink(n + 1),
            host_in: source(n + 2),
            nic_out: sink(n + 3),
            engine,
            overload: 7 * n,
            not_scheduled: 11 * n,
            unaccounted: 13 * n,
            unsent: 17 * n,
            over_budget: 37 * n,
            stalls: 41 * n,
            imbalance: Imbalance { engine: 19 * n, switch: 23 * n, ..Imbalance::default() },
            coalescing: Coalescing { probes: 29 * n, passed: 31 * n, ..Coalescing::default() },
            split: Some(split),
        }
    }

    #[test]
    fn a_sum_without_one_part_is_the_other() {
        let (first, second) = (reading(3), reading(50));
        let both = first.plus(&second);
        assert_eq!(both.elapsed, Duration::from_secs(53));
        assert_eq!((both.nic_in.frames, both.host_out.packets, both.overload), (477, 110, 371));
        assert_eq!(both.engine.segments_per_aggregate.count(), 2);
        assert_eq!((both.since(&first), both.since(&second)), (second, first.clone()));
        assert_eq!(first.plus(&Reading::default()), first);
        assert_eq!(first.since(&Reading::default()), first);
    }
}
