//! `rxo-lab bench tcp`: measures the endpoint's goodput per CPU second, compared with smoltcp and with
//! reduced variants of itself.
//!
//! `link.rs` is the link and `stack.rs` the interface of a contender. The contenders are `rxo/`, `host.rs`,
//! `smoltcp.rs` and `floor/`. `peer.rs` is the generator, `lane.rs` connects two ends, and `lineup.rs` lists
//! the races. `acks.rs` measures the cost of an ACK for a sender, `cast.rs` for the sender of a group, and
//! `memory.rs` the memory of a connection.

mod acks;
mod cast;
mod counted;
mod floor;
mod host;
mod lane;
mod lineup;
mod link;
mod memory;
mod peer;
mod rxo;
mod smoltcp;
mod stack;

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use rxo_demo::stats::Quartiles;
use serde::Serialize;

use self::lane::Lane;
use self::lineup::{Contender, Kind, Name, RACES, Race};
use self::memory::Memory;
use self::stack::{BUFFER_BYTES, Reading};
use crate::rounds::{Rounds, Run};

pub(crate) use self::acks::AckCase;
pub(crate) use self::cast::CastCase;
pub(crate) use self::counted::Counted;

/// Options of `rxo-lab bench tcp`.
#[derive(Args, Debug)]
pub struct TcpArgs {
    #[command(flatten)]
    rounds: Rounds,
    /// Only these races.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Name>,
    /// Only this contender, by its name in the table, or these if it is said again; a profiler needs one alone.
    #[arg(long = "contender")]
    contenders: Vec<String>,
}

const ROUNDS: u32 = 41;
/// Number of connections in the memory measurement.
const IDLE_CONNECTIONS: usize = 10_000;
/// Bytes in a pass: 16 receive buffers.
const PASS_BYTES: u64 = 4 << 20;
/// Bytes before the first pass, so that the windows have reached their full size.
const WARM_BYTES: u64 = 8 << 20;
/// Bytes of each connection before the first pass: more than an application may write before anything is sent.
const WARM_BYTES_OF_EACH: u64 = BUFFER_BYTES as u64 * 3 / 2;
/// Bytes per nanosecond of a rate of one Gbit/s.
const BYTES_PER_NS: f64 = 0.125;

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    rows: Vec<Row>,
    /// Memory of a connection; `None` if only some races ran.
    memory: Option<Memory>,
}

/// The result of one contender in one race.
#[derive(Clone, Debug, Serialize)]
struct Row {
    kind: Kind,
    checksums: bool,
    timestamps: bool,
    connections: u16,
    reading: Reading,
    /// `true` if GSO frames cross the link whole.
    takes_large: bool,
    contender: &'static str,
    /// Gigabits of payload per CPU second.
    gbit: Quartiles,
    /// CPU time per full segment, in nanoseconds.
    ns_per_segment: f64,
    /// Ratio of its goodput to that of the race's first contender.
    times_the_first: f64,
}

/// Measures all races, and prints the report.
pub(crate) fn run(args: &TcpArgs) -> Result<()> {
    let run = args.rounds.begin(ROUNDS);
    // Memory comes first, because the allocator keeps what the races free.
    let memory = args.only.is_empty().then(|| memory::measure(IDLE_CONNECTIONS));
    let races = RACES.iter().filter(|race| args.only.is_empty() || args.only.contains(&race.name));
    let rows = races.map(|race| run_race(race, &run, &args.contenders));
    let rows = rows.collect::<Result<Vec<_>>>()?.concat();
    run.print(&Report { rows, memory })
}

/// Runs the contenders in `names` (all, if it is empty) in turn, round after round.
fn run_race(race: &Race, run: &Run, names: &[String]) -> Result<Vec<Row>> {
    let is_asked = |contender: &&Contender| {
        names.is_empty() || names.iter().any(|name| name == contender.name())
    };
    let lane = |contender: &Contender| (*contender, Lane::new(race, *contender));
    let mut lanes: Vec<_> = race.contenders.iter().filter(is_asked).map(lane).collect();
    for (_, lane) in &mut lanes {
        let bytes = WARM_BYTES.max(u64::from(race.connections) * WARM_BYTES_OF_EACH);
        lane.read(bytes, &mut |stack, now| stack.turn(now));
    }
    let name = |(contender, _): &(Contender, _)| contender.name().to_owned();
    let rates = run.measure(&mut lanes, name, |(_, lane)| Ok(pass(lane)))?;
    let mut rows = Vec::new();
    for ((contender, lane), rates) in lanes.into_iter().zip(rates) {
        let first = rows.first().map(|row: &Row| row.gbit.median);
        rows.push(Row::new(race, contender, Quartiles::of(rates), lane.segment_bytes(), first));
    }
    Ok(rows)
}

/// Runs one pass. Returns the gigabits of payload per second of the stacks' turns.
fn pass(lane: &mut Lane) -> f64 {
    let mut ns = 0.0;
    let bytes = lane.read(PASS_BYTES, &mut |stack, now| {
        let start = Instant::now();
        stack.turn(now);
        ns += start.elapsed().as_nanos() as f64;
    });
    bytes as f64 / ns / BYTES_PER_NS
}

impl Row {
    fn new(
        race: &Race,
        contender: Contender,
        gbit: Quartiles,
        segment_bytes: usize,
        first: Option<f64>,
    ) -> Self {
        Self {
            kind: race.kind,
            checksums: race.checksums,
            timestamps: race.timestamps,
            connections: race.connections,
            reading: race.reading,
            takes_large: race.takes_large,
            contender: contender.name(),
            gbit,
            ns_per_segment: segment_bytes as f64 / BYTES_PER_NS / gbit.median,
            times_the_first: gbit.median / first.unwrap_or(gbit.median),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_finishes_every_race() {
        // Two thousand pairs of connections and their buffers take a gigabyte.
        for race in RACES.iter().filter(|race| race.name != Name::Curve || race.connections < 2_000)
        {
            let rows = run_race(race, &Run::of(1), &[]).unwrap();
            assert_eq!(rows.len(), race.contenders.len());
            assert!(rows.iter().all(|row| row.gbit.median > 0.0), "{rows:?}");
        }
    }
}
