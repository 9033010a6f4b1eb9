//! `rxo-lab bench acks`: measures nanoseconds per ACK in `rxo-ack`.
//!
//! No rival implementation exists, so the cases take turns with each other: disturbances of the machine
//! affect all alike.

mod expand;
mod show;
mod split;

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::machine::Machine;
use crate::rounds::Rounds;
use crate::stats::Summary;

pub(crate) use expand::Expand;
pub(crate) use split::Split;

/// Options of `rxo-lab bench acks`.
#[derive(Args, Debug)]
pub struct AcksArgs {
    #[command(flatten)]
    rounds: Rounds,
}

const ROUNDS: u32 = 101;
/// Timed passes of a turn, after one untimed pass.
const PASSES: usize = 3;

/// A measured case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Case {
    /// Expands a template.
    Expand(Expand),
    /// Reports a delivery to the splitter, or asks it about an ACK.
    Split(Split),
}

/// A prepared case, which does the same work in every pass.
pub(crate) trait Work {
    /// Restores the input that a pass consumes. Not timed.
    fn prepare(&mut self);
    /// Runs the timed work.
    fn pass(&mut self);
    /// Returns the number of items that a pass processes.
    fn items(&self) -> usize;
}

impl Case {
    /// Returns the name of the case, for tables and `instructions.json`.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Expand(expand) => expand.name(),
            Self::Split(split) => split.name().to_owned(),
        }
    }

    /// Returns the target in nanoseconds; `None` if there is none.
    fn target_ns(self) -> Option<f64> {
        match self {
            Self::Expand(_) => Some(expand::TARGET_NS),
            Self::Split(_) => None,
        }
    }

    pub(crate) fn work(self) -> Box<dyn Work> {
        match self {
            Self::Expand(expand) => Box::new(expand.work()),
            Self::Split(split) => Box::new(split.work()),
        }
    }
}

/// Returns all cases, in the order of the table.
pub(crate) fn cases() -> Vec<Case> {
    Expand::all().map(Case::Expand).chain(Split::ALL.map(Case::Split)).collect()
}

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    rows: Vec<Row>,
    machine: Machine,
    rounds: u32,
}

/// The result of one case: median and quartiles.
#[derive(Debug, Serialize)]
struct Row {
    case: String,
    ns: f64,
    ns_low: f64,
    ns_high: f64,
    target_ns: Option<f64>,
}

/// Measures all cases, and prints the report.
pub(crate) fn run(args: &AcksArgs) -> Result<()> {
    let report = measure(args.rounds.number(ROUNDS));
    args.rounds.print(&report, show::table)
}

fn measure(rounds: u32) -> Report {
    let mut works: Vec<_> = cases().into_iter().map(|case| (case, case.work(), vec![])).collect();
    for _ in 0..rounds {
        for (_, work, timings) in &mut works {
            turn(work.as_mut(), timings);
        }
    }
    let rows = works.into_iter().map(|(case, _, timings)| Row::new(case, &timings)).collect();
    Report { rows, machine: Machine::read(), rounds }
}

fn turn(work: &mut dyn Work, timings: &mut Vec<f64>) {
    work.prepare();
    work.pass();
    for _ in 0..PASSES {
        work.prepare();
        let start = Instant::now();
        work.pass();
        timings.push(start.elapsed().as_nanos() as f64 / work.items() as f64);
    }
}

impl Row {
    fn new(case: Case, timings: &[f64]) -> Self {
        let Summary { low, median, high } = Summary::of(timings);
        let (case, target_ns) = (case.name(), case.target_ns());
        Self { case, ns: median, ns_low: low, ns_high: high, target_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::{cases, measure};

    #[test]
    fn every_case_runs_once_and_is_timed() {
        let report = measure(1);
        assert_eq!(report.rows.len(), cases().len());
        assert!(report.rows.iter().all(|row| row.ns > 0.0));
    }
}
