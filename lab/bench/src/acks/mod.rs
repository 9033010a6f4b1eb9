//! `rxo-lab bench acks`: measures nanoseconds per ACK in `rxo-ack`.
//!
//! No rival implementation exists, so the cases take turns with each other: disturbances of the machine
//! affect all alike.

mod expand;
mod split;

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use rxo_demo::stats::Quartiles;
use serde::Serialize;

use crate::rounds::{Rounds, Rows, Run};

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

/// The result of one case.
#[derive(Debug, Serialize)]
struct Row {
    case: String,
    ns: Quartiles,
    target_ns: Option<f64>,
}

/// Measures all cases, and prints the report.
pub(crate) fn run(args: &AcksArgs) -> Result<()> {
    let run = args.rounds.begin(ROUNDS);
    run.print(&measure(&run)?)
}

fn measure(run: &Run) -> Result<Rows<Row>> {
    let mut works: Vec<_> = cases().into_iter().map(|case| (case, case.work())).collect();
    let samples =
        run.measure(&mut works, |(case, _)| case.name(), |(_, work)| Ok(turn(work.as_mut())))?;
    let row = |((case, _), timings): (&(Case, _), Vec<[f64; PASSES]>)| {
        let ns = Quartiles::of(timings.into_iter().flatten());
        Row { case: case.name(), ns, target_ns: case.target_ns() }
    };
    Ok(Rows { rows: works.iter().zip(samples).map(row).collect() })
}

/// Returns the nanoseconds for an item of each timed pass.
fn turn(work: &mut dyn Work) -> [f64; PASSES] {
    work.prepare();
    work.pass();
    std::array::from_fn(|_| {
        work.prepare();
        let start = Instant::now();
        work.pass();
        start.elapsed().as_nanos() as f64 / work.items() as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_runs_once_and_is_timed() {
        let report = measure(&Run::of(1)).unwrap();
        assert_eq!(report.rows.len(), cases().len());
        assert!(report.rows.iter().all(|row| row.ns.median > 0.0));
    }
}
