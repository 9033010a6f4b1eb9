//! `rxo-bench live-tcp`: rxo's own TCP beside Linux's in the same place, over real interfaces.
//!
//! A Linux peer exchanges files with a stack: through a wire, and over a path with a delay (`place.rs`). The
//! stack is Linux or rxo (`transfer.rs`). All places are up at the same time and take turns. Processor time is
//! that of the whole machine, peer and path included, because a veth charges whoever runs its softirq.

mod machine_time;
mod place;
mod transfer;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use self::place::{Place, Stack};
use self::transfer::{Cost, Direction};
use crate::stats::Summary;

/// The options.
#[derive(Args, Debug)]
pub(crate) struct LiveTcpArgs {
    /// The command under test. Without it, the `rxo` beside this program.
    #[arg(long, value_name = "FILE")]
    rxo: Option<PathBuf>,
    /// Rounds over all places, 1 or more.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Prints a JSON document.
    #[arg(long)]
    json: bool,
}

/// Delays there and back, and the bytes that are sent over each.
const CASES: [(Duration, &[u64]); 2] =
    [(Duration::from_millis(40), &[1_000_000, 16_000_000]), (Duration::ZERO, &[500_000_000])];

/// What one file takes with both stacks.
#[derive(Debug, Serialize)]
struct Row {
    direction: Direction,
    delay_ms: u128,
    bytes: u64,
    linux: Spread,
    rxo: Spread,
    /// The time of rxo for that of Linux.
    time_ratio: f64,
    /// The processor time of the whole machine with rxo for that with Linux.
    processor_ratio: f64,
}

/// The median with its quartiles, and the median of the processor time of the whole machine.
#[derive(Debug, Serialize)]
struct Spread {
    seconds: f64,
    low: f64,
    high: f64,
    processor_seconds: f64,
}

/// Measures and prints.
///
/// # Errors
/// If namespaces cannot be made, a stack fails, or bytes are missing.
pub(crate) fn run(args: &LiveTcpArgs) -> Result<()> {
    rxo_lab::become_root_in_user_namespace()?;
    let rxo = match &args.rxo {
        Some(rxo) => rxo.clone(),
        None => std::env::current_exe()?.with_file_name("rxo"),
    };
    let mut rows = Vec::new();
    for (delay, sizes) in CASES {
        let places = [Stack::Linux, Stack::Rxo].map(|stack| Place::new(stack, delay, &rxo));
        let [linux, own] = places;
        let places = [linux.context("Linux's place")?, own.context("rxo's place")?];
        for bytes in sizes {
            for direction in [Direction::Receiving, Direction::Sending] {
                eprintln!("live-tcp: {direction} {bytes} bytes, {} ms", delay.as_millis());
                rows.push(row(&places, delay, direction, *bytes, args.rounds)?);
            }
        }
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        show(&rows, args.rounds);
    }
    Ok(())
}

fn row(
    places: &[Place; 2],
    delay: Duration,
    direction: Direction,
    bytes: u64,
    rounds: u32,
) -> Result<Row> {
    let mut costs = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (place, costs) in places.iter().zip(&mut costs) {
            costs.push(place.transfer(direction, bytes)?);
        }
    }
    let [linux, rxo] = costs.map(|costs| spread(&costs));
    Ok(Row {
        direction,
        delay_ms: delay.as_millis(),
        bytes,
        time_ratio: rxo.seconds / linux.seconds,
        processor_ratio: rxo.processor_seconds / linux.processor_seconds,
        linux,
        rxo,
    })
}

fn spread(costs: &[Cost]) -> Spread {
    let of = |figure: fn(&Cost) -> Duration| {
        Summary::of(&costs.iter().map(|cost| figure(cost).as_secs_f64()).collect::<Vec<_>>())
    };
    let time = of(|cost| cost.time);
    Spread {
        seconds: time.median,
        low: time.low,
        high: time.high,
        processor_seconds: of(|cost| cost.processor).median,
    }
}

fn show(rows: &[Row], rounds: u32) {
    println!(
        "{:<10} {:>6} {:>7} {:>22} {:>22} {:>6} {:>22}",
        "the stack", "ms", "MB", "Linux, s", "rxo, s", "ratio", "processor, ratio"
    );
    for row in rows {
        let spread = |of: &Spread| format!("{:.3} ({:.3}-{:.3})", of.seconds, of.low, of.high);
        println!(
            "{:<10} {:>6} {:>7} {:>22} {:>22} {:>6.2} {:>22.2}",
            row.direction.to_string(),
            row.delay_ms,
            row.bytes / 1_000_000,
            spread(&row.linux),
            spread(&row.rxo),
            row.time_ratio,
            row.processor_ratio,
        );
    }
    println!("Medians of {rounds} rounds, quartiles in brackets. Processor: of the whole machine.");
}
