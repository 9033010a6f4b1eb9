//! Reports: combines the reports of the workers of a run, and checks that all workers are running.
//!
//! This module is separate so that the combining and the check can be tested without threads and without a
//! clock. Contract: the figures of all workers are complete when each worker has reported since the previous
//! figures. A worker that does not report delays them by one interval at most. All workers are running if each
//! has made a turn since the previous check that found them running; the turns of other workers therefore never
//! hide a worker that hangs.

use crate::worker::{Reading, Readings};

/// The last report of each worker. Also records which workers have reported since the figures were last
/// complete.
#[derive(Debug)]
pub(super) struct WorkerReports {
    readings: Vec<Reading>,
    /// For each worker, `true` if it has reported since the figures were last complete.
    reported: Vec<bool>,
}

impl WorkerReports {
    pub(super) fn new(workers: usize) -> Self {
        Self { readings: vec![Reading::default(); workers], reported: vec![false; workers] }
    }

    /// Records the counters of worker `n`. Returns `true` if the figures are complete now. Only a report can
    /// complete the figures; other messages of a worker only update its counters.
    pub(super) fn record(&mut self, n: usize, reading: Reading, is_report: bool) -> bool {
        self.readings[n] = reading;
        if !is_report {
            return false;
        }
        let is_second = std::mem::replace(&mut self.reported[n], true);
        let is_complete = is_second || self.reported.iter().all(|has| *has);
        if is_complete {
            self.reported.fill(false);
            // The second report belongs to the next figures, too.
            self.reported[n] = is_second;
        }
        is_complete
    }

    /// Returns the last counters of all workers, and their sum.
    pub(super) fn readings(&self) -> Readings {
        let each = self.readings.iter().cloned().map(Readings::from);
        Readings::side_by_side(each.collect())
    }
}

/// The number of turns of each worker at the last check that found all of them running.
#[derive(Debug)]
pub(super) struct TurnCounts {
    turns: Vec<u64>,
}

impl TurnCounts {
    pub(super) fn new(workers: usize) -> Self {
        Self { turns: vec![0; workers] }
    }

    /// Returns `true` if each worker has run a turn since the last call that returned `true`.
    pub(super) fn is_complete(&mut self, turns: impl Iterator<Item = u64> + Clone) -> bool {
        let is_complete = self.turns.iter().zip(turns.clone()).all(|(last, now)| *last != now);
        if is_complete {
            self.turns = turns.collect();
        }
        is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(count: u64) -> Reading {
        let mut reading = Reading::default();
        reading.nic_in.frames = count;
        reading
    }

    #[test]
    fn figures_are_complete_when_each_worker_has_reported() {
        let mut reports = WorkerReports::new(3);
        assert!(!reports.record(0, frames(1), true));
        assert!(!reports.record(2, frames(10), true));
        assert!(!reports.record(1, frames(50), false), "it only looks");
        assert!(reports.record(1, frames(100), true));
        assert_eq!(reports.readings().all.nic_in.frames, 111);
        assert!(!reports.record(1, frames(200), true));
    }

    #[test]
    fn a_worker_that_does_not_report_delays_figures_by_one_interval() {
        let mut reports = WorkerReports::new(2);
        let complete: Vec<_> = (1..6).map(|n| reports.record(0, frames(n), true)).collect();
        assert_eq!(complete, [false, true, true, true, true]);
        // The worker reports again, and both reports are complete together.
        assert!(reports.record(1, frames(9), true));
        assert!(!reports.record(0, frames(9), true));
    }

    #[test]
    fn a_worker_that_hangs_is_not_hidden_by_the_others() {
        let mut call = TurnCounts::new(2);
        assert!(call.is_complete([3, 900].into_iter()));
        let found: Vec<_> = (0..5).map(|n| call.is_complete([4 + n, 900].into_iter())).collect();
        assert_eq!(found, [false; 5]);
        assert!(call.is_complete([9, 901].into_iter()));
        assert!(!call.is_complete([9, 902].into_iter()));
    }
}
