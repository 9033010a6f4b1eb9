//! `rxo-lab bench live-tcp`: compares rxo's own TCP with Linux's in the same network, over real interfaces.
//!
//! A Linux peer and a stack exchange bytes, through a wire or over a path with delay and loss (`place.rs`).
//! The stack is Linux or rxo (`transfer.rs`). Both places of a row run at the same time and take turns.
//! Processor time is that of the whole machine, peer and path included, because a veth charges the thread
//! that runs its softirq. `case.rs` lists the rows; `memory.rs` measures the memory of a connection.

mod case;
mod congestion;
mod machine_time;
mod memory;
mod place;
mod transfer;

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use rxo_demo::stats::{Quartiles, Spread};
use serde::Serialize;

use self::case::Case;
pub(crate) use self::case::Net;
use self::congestion::Congestion;
pub(crate) use self::machine_time::Used;
use self::memory::Memory;
pub(crate) use self::place::{Place, Stack};
use self::transfer::Cost;
use crate::rounds::{Rounds, Run};
use crate::subject::Subject;

/// Options of `rxo-lab bench live-tcp`.
#[derive(Args, Debug)]
pub struct LiveTcpArgs {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    rounds: Rounds,
    /// The congestion control of whoever sends, with Linux and with rxo.
    #[arg(long, default_value_t)]
    congestion: Congestion,
    /// What rxo begins with where it sends: rfc6928, or a number of segments. Linux begins with 10.
    #[arg(long, value_name = "SEGMENTS", default_value = RFC_6928)]
    initial_window: String,
    /// Workers of rxo, each with a queue of the interface and connections of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// Every combination: MTU 1,500 and 9,000, TSO, 0 and 40 ms, 0 and 1 % loss, 1, 16 and 400 connections, and on a wire
    /// 4, 64, 2,000 and 10,000.
    #[arg(long)]
    all: bool,
    /// Only rows of every combination with these words, such as receiving,mtu=1500,tso=off,delay=0,loss=0,
    /// connections=1. Words of one kind are alternatives. memory: the memory of a connection, which is measured
    /// otherwise only if nothing is chosen.
    #[arg(long, value_name = "WORDS", value_delimiter = ',', conflicts_with = "all")]
    only: Vec<String>,
    /// Leaves GRO off on rxo's interface, as a veth begins. Linux's has it on.
    #[arg(long)]
    without_gro: bool,
}

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    congestion: Congestion,
    initial_window: String,
    workers: u32,
    rows: Vec<Row>,
    memory: Vec<Memory>,
}

/// A row: the cost with both stacks, or the reason for a failure.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    case: Case,
    #[serde(flatten)]
    measured: Option<Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

#[derive(Debug, Serialize)]
struct Measured {
    linux: Costs,
    rxo: Costs,
    /// Ratio of rxo's rate to Linux's.
    rate_ratio: f64,
    /// Ratio of the whole machine's processor time with rxo to that with Linux.
    processor_ratio: f64,
    /// Ratio of the participants' processor times, for a machine that also runs other programs.
    own_ratio: f64,
}

/// Median and quartiles of the time, and medians of the other quantities.
#[derive(Debug, Serialize)]
struct Costs {
    seconds: Quartiles,
    /// Processor time of the whole machine, with a resolution of 10 ms.
    processor_seconds: f64,
    /// Processor time of the participants, with a resolution of 10 ms.
    own_seconds: f64,
    /// Frames that the peer received.
    peer_frames: f64,
}

/// Measures the selected rows, and prints the report.
///
/// # Errors
/// If namespaces cannot be made, or a row has failed; the other rows are printed anyway.
pub(crate) fn run(args: &LiveTcpArgs) -> Result<()> {
    rxo_testbed::become_root_in_user_namespace()?;
    let rxo = args.subject.path()?;
    let cases = cases(args)?;
    transfer::allow_files(cases.iter().map(|case| case.connections).max().unwrap_or_default())?;
    let run = args.rounds.begin(ROUNDS);
    let rows = rows(&cases, &rxo, args, &run);
    let has_memory = args.only.is_empty() || args.only.iter().any(|word| word == MEMORY);
    let memory = if has_memory { memory(&rxo, args)? } else { Vec::new() };
    let report = Report {
        congestion: args.congestion,
        initial_window: args.initial_window.clone(),
        workers: args.workers,
        rows,
        memory,
    };
    run.print(&report)?;
    let failed = report.rows.iter().filter(|row| row.failure.is_some()).count();
    if failed > 0 {
        bail!("{failed} of {} rows have failed", report.rows.len());
    }
    Ok(())
}

fn cases(args: &LiveTcpArgs) -> Result<Vec<Case>> {
    let all = Case::all();
    let words: Vec<_> = args.only.iter().filter(|word| *word != MEMORY).cloned().collect();
    match (args.all, args.only.is_empty(), words.is_empty()) {
        (true, ..) => Ok(all),
        (_, true, _) => Ok(all.into_iter().filter(Case::is_default).collect()),
        (_, _, true) => Ok(Vec::new()),
        _ => case::chosen(all, &words),
    }
}

fn rows(cases: &[Case], rxo: &Path, args: &LiveTcpArgs, run: &Run) -> Vec<Row> {
    let mut rows = Vec::new();
    for cases in cases.chunk_by(|one, next| one.net == next.net) {
        let Some(first) = cases.first() else { continue };
        let places = places(&first.net, rxo, args);
        for case in cases {
            eprintln!("live-tcp: {case}");
            let measured = match &places {
                Ok(places) => measured(places, case, run),
                Err(error) => Err(anyhow::anyhow!("{error:#}")),
            };
            let failure = measured.as_ref().err().map(|error| format!("{error:#}"));
            if let Some(failure) = &failure {
                eprintln!("live-tcp: failed: {failure}");
            }
            rows.push(Row { case: *case, measured: measured.ok(), failure });
        }
    }
    rows
}

fn places(net: &Net, rxo: &Path, args: &LiveTcpArgs) -> Result<[Place; 2]> {
    let place = |stack| {
        let place = Place::new(stack, net, rxo)?.with_congestion(args.congestion);
        Ok(place.beginning_with(&args.initial_window).with_workers(args.workers))
    };
    let linux: Result<_> = place(Stack::Linux);
    let own =
        place(Stack::Rxo).and_then(|it| if args.without_gro { it.without_gro() } else { Ok(it) });
    Ok([linux.context("Linux's place")?, own.context("rxo's place")?])
}

fn measured(places: &[Place; 2], case: &Case, run: &Run) -> Result<Measured> {
    let name = |place: &&Place| format!("{:?}", place.stack);
    let costs = run.measure(&mut places.each_ref(), name, |place| place.transfer(case))?;
    let [linux, rxo] = [0, 1].map(|stack| summed_up(&costs[stack]));
    Ok(Measured {
        rate_ratio: linux.seconds.median / rxo.seconds.median,
        processor_ratio: rxo.processor_seconds / linux.processor_seconds,
        own_ratio: rxo.own_seconds / linux.own_seconds,
        linux,
        rxo,
    })
}

fn summed_up(costs: &[Cost]) -> Costs {
    let median = |of: fn(&Cost) -> f64| Spread::over(costs, of).map_or(0.0, |spread| spread.median);
    Costs {
        seconds: Quartiles::over(costs, |cost| cost.time.as_secs_f64()),
        processor_seconds: median(|cost| cost.processor.as_secs_f64()),
        own_seconds: median(|cost| cost.own.as_secs_f64()),
        peer_frames: median(|cost| cost.peer_frames as f64),
    }
}

fn memory(rxo: &Path, args: &LiveTcpArgs) -> Result<Vec<Memory>> {
    eprintln!("live-tcp: memory");
    let places = places(&memory::NET, rxo, args)?;
    places.iter().map(memory::measure).collect::<Result<_>>().context("memory")
}

const ROUNDS: u32 = 5;
/// Word that selects the memory measurement.
const MEMORY: &str = "memory";
/// Name in `--initial-window` of a host's default initial window.
const RFC_6928: &str = "rfc6928";
