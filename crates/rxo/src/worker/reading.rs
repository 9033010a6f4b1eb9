//! All counters at one instant, and the times that belong to them.

use std::time::Duration;

use rxo_ack::SplitCounters;
use rxo_coalesce::Counters;
use rxo_device::{SinkCounters, SourceCounters};
use rxo_frame::Instant;

/// All counters of a worker at one instant: totals, of which two can be subtracted.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Since the worker began to run.
    pub elapsed: Duration,
    /// Processor time of its thread since then, user and system together.
    pub cpu: Duration,
    /// From the nic.
    pub nic_in: SourceCounters,
    /// To the host.
    pub host_out: SinkCounters,
    /// From the host.
    pub host_in: SourceCounters,
    /// To the nic.
    pub nic_out: SinkCounters,
    /// What the engine did.
    pub engine: Counters,
    /// Frames from the nic that were dropped because more came than the worker could take.
    pub overload: u64,
    /// What was done about stretch ACKs; `None` unless [`WorkerConfig::ack_split`] asks for it.
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

    /// Whether a report is due; the next one is then due an interval later. Intervals missed are
    /// not made up for.
    pub(super) fn is_report_due(&mut self, now: Instant) -> bool {
        let Some(due_at) = self.report_at.filter(|due_at| now >= *due_at) else { return false };
        let next = due_at + self.report_every;
        self.report_at = Some(if next > now { next } else { now + self.report_every });
        true
    }
}
