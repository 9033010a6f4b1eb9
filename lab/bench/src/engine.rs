//! `rxo-lab bench engine`: measures nanoseconds per packet of every engine over every workload.

use anyhow::Result;
use clap::Args;
use rxo_testkit::Workload;

use crate::arch::CAN_FLUSH;
use crate::contender::BATCH_FRAMES;
use crate::lineup::{Cache, Course, EngineName};
use crate::race::race;
use crate::report::{Report, compare};
use crate::rounds::{Rounds, Run};

/// Options of `rxo-lab bench engine`.
#[derive(Args, Debug)]
pub struct EngineArgs {
    #[command(flatten)]
    rounds: Rounds,
    /// Only these workloads: W1 to W9, mixed, bad-case, U1, U2, many-flows.
    #[arg(long, value_delimiter = ',', value_parser = workload)]
    only: Vec<Workload>,
    /// Only these engines.
    #[arg(long, value_delimiter = ',', default_values = ["rxo", "dpdk", "tun-rs"])]
    engines: Vec<EngineName>,
    /// Only with packets in this state.
    #[arg(long, value_delimiter = ',', default_values = ["warm", "cold"])]
    cache: Vec<Cache>,
}

const ROUNDS: u32 = 31;
const FLOWS_IN_MANY: u32 = 1_000_000;
/// All workloads, in the order of the table.
pub(crate) const WORKLOADS: [Workload; 14] = [
    Workload::W1,
    Workload::W2,
    Workload::W3,
    Workload::W4,
    Workload::W5,
    Workload::W6,
    Workload::W7,
    Workload::W8,
    Workload::W9,
    Workload::Mixed,
    Workload::BadCase,
    Workload::U1,
    Workload::U2,
    Workload::ManyFlows(FLOWS_IN_MANY),
];

/// Measures all engines, and prints the report.
pub(crate) fn run(args: &EngineArgs) -> Result<()> {
    let run = args.rounds.begin(ROUNDS);
    run.print(&measure(args, &run)?)
}

/// Returns the workload `name`.
///
/// # Errors
/// If there is none; the message lists the names.
pub(crate) fn workload(name: &str) -> Result<Workload, String> {
    let names = || WORKLOADS.map(Workload::name).join(", ");
    WORKLOADS
        .into_iter()
        .find(|workload| workload.name().eq_ignore_ascii_case(name))
        .ok_or_else(|| format!("there are: {}", names()))
}

fn measure(args: &EngineArgs, run: &Run) -> Result<Report> {
    let mut caches = args.cache.clone();
    caches.retain(|cache| CAN_FLUSH || *cache == Cache::Warm);
    let workloads = if args.only.is_empty() { &WORKLOADS[..] } else { &args.only };
    let mut rows = Vec::new();
    for (index, workload) in workloads.iter().enumerate() {
        eprintln!("{} ({} of {})", workload.name(), index + 1, workloads.len());
        rows.extend(race(&Course::new(*workload), (&args.engines, &caches), run)?);
    }
    compare(&mut rows);
    Ok(Report { rows, batch_frames: BATCH_FRAMES, left_out: args.left_out() })
}

impl EngineArgs {
    fn left_out(&self) -> Vec<String> {
        let engines = self.engines.iter();
        let mut lines: Vec<String> = engines
            .filter_map(|engine| Some(format!("{}: {}", engine.name(), engine.missing()?)))
            .collect();
        if !CAN_FLUSH && self.cache.contains(&Cache::Cold) {
            lines.push("cold rows: this processor has no instruction to flush a line".to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_takes_every_workload_once_and_loses_nothing() {
        let engines = vec![EngineName::Rxo, EngineName::Dpdk, EngineName::TunRs];
        let args = EngineArgs {
            rounds: Rounds::default(),
            only: Vec::new(),
            engines,
            cache: vec![Cache::Warm, Cache::Cold],
        };
        let report = measure(&args, &Run::of(1)).unwrap();
        let rxo = report.rows.iter().filter(|row| row.engine == EngineName::Rxo);
        assert!(rxo.count() >= super::WORKLOADS.len());
        assert!(report.rows.iter().all(|row| row.packets_per_aggregate >= 1.0));
    }
}
