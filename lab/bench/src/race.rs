//! Times all contenders in turn, round after round, so that disturbances of the machine affect all
//! of them alike.

use std::time::Instant;

use anyhow::{Result, ensure};
use rxo_demo::stats::Quartiles;

use crate::contender::{Contender, Outcome};
use crate::expected::expected;
use crate::lineup::{Cache, Course, EngineName, Entry};
use crate::report::Row;
use crate::rounds::Run;

/// Races all contenders of `engines` over `course`, in each of these cache states. Returns a row for each contender
/// and state.
///
/// # Errors
/// If the machine's load cannot be read, an engine loses a packet, or rxo coalesces more or less than it may.
pub(crate) fn race(
    course: &Course,
    (engines, caches): (&[EngineName], &[Cache]),
    run: &Run,
) -> Result<Vec<Row>> {
    let mut entries = course.entries(engines);
    let name = |entry: &Entry<'_>| format!("{} {}", entry.engine.name(), entry.variant);
    let turns = run.measure(&mut entries, name, |entry| {
        let packets = course.traffic(entry.checksum).len() as f64;
        let turns = caches.iter().map(|cache| turn(entry.contender.as_mut(), *cache, packets));
        Ok(turns.collect::<Vec<_>>())
    })?;
    let mut rows = Vec::new();
    for (entry, turns) in entries.iter().zip(&turns) {
        check(course, entry)?;
        for (place, cache) in caches.iter().enumerate() {
            let timings = turns.iter().flat_map(|turn| turn[place].iter().copied());
            rows.push(Row::new(course.name(), entry, *cache, Quartiles::of(timings)));
        }
    }
    Ok(rows)
}

/// Checks that the engine has lost no packet, and that rxo has coalesced exactly as much as the workload permits.
fn check(course: &Course, entry: &Entry<'_>) -> Result<()> {
    let traffic = course.traffic(entry.checksum);
    let (engine, variant, workload) = (entry.engine.name(), entry.variant, course.name());
    let Outcome { frames, deliveries } = entry.contender.outcome();
    let count = traffic.len();
    ensure!(frames == count as u64, "{engine} delivered {frames} of {count} packets of {workload}");
    if entry.engine == EngineName::Rxo {
        let allowed = expected(traffic, entry.checksum, entry.acks).deliveries;
        ensure!(
            deliveries == allowed,
            "{engine} ({variant}) made {deliveries} deliveries of {workload}, which allows {allowed}"
        );
    }
    Ok(())
}

/// Runs one contender's turn: a warm-up pass, then the timed passes. Returns the nanoseconds for a packet of each.
fn turn(contender: &mut dyn Contender, cache: Cache, packets: f64) -> Vec<f64> {
    contender.prepare();
    contender.pass();
    let passes = match cache {
        Cache::Warm => WARM_PASSES,
        Cache::Cold => 1,
    };
    let pass = |_| {
        contender.prepare();
        if cache == Cache::Cold {
            contender.make_cold();
        }
        let start = Instant::now();
        contender.pass();
        start.elapsed().as_nanos() as f64 / packets
    };
    (0..passes).map(pass).collect()
}

/// Timed passes of a warm turn. A cold turn has one, because a cold pass takes fifty times as long to
/// prepare.
const WARM_PASSES: usize = 3;
