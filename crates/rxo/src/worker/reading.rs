//! All counters of a worker at one instant, with their times.

use std::time::Duration;

use rxo_ack::SplitCounters;
use rxo_coalesce::Counters;
use rxo_device::{SinkCounters, SourceCounters};
use rxo_frame::Instant;

/// All counters of a worker at one instant. They are totals; subtract two readings for an interval.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Time since the worker began to run.
    pub elapsed: Duration,
    /// Processor time of its thread since then, user and system together.
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
    /// Frames from the nic that were dropped because more came than the worker could take.
    pub overload: u64,
    /// Counters of ACK splitting; `None` unless [`WorkerConfig::ack_split`] is set.
    ///
    /// [`WorkerConfig::ack_split`]: super::WorkerConfig::ack_split
    pub split: Option<SplitCounters>,
}

/// When the worker began, was last read, and is next due to report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    started_at: Instant,
    now: Instant,
    cpu_at_start: Duration,
    cpu: Duration,
    report_at: Option<Instant>,
    report_every: Duration,
}

impl Times {
    pub(super) fn start(&mut self, now: Instant, cpu: Duration, report_every: Option<Duration>) {
        *self = Self {
            started_at: now,
            now,
            cpu_at_start: cpu,
            cpu,
            report_at: report_every.map(|every| now + every),
            report_every: report_every.unwrap_or_default(),
        };
    }

    pub(super) const fn set(&mut self, now: Instant, cpu: Duration) {
        (self.now, self.cpu) = (now, cpu);
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.now.since(self.started_at)
    }

    pub(super) const fn cpu(&self) -> Duration {
        self.cpu.saturating_sub(self.cpu_at_start)
    }

    pub(super) const fn report_at(&self) -> Option<Instant> {
        self.report_at
    }

    /// Whether a report is due. If so, the next is due an interval later; missed reports are skipped.
    pub(super) fn is_report_due(&mut self, now: Instant) -> bool {
        let Some(due_at) = self.report_at.filter(|due_at| now >= *due_at) else { return false };
        let next = due_at + self.report_every;
        self.report_at = Some(if next > now { next } else { now + self.report_every });
        true
    }
}
