//! Times all contenders in turn, round after round, so that disturbances of the machine affect all
//! of them alike.

use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;
use rxo_demo::stats::Quartiles;
use serde::Serialize;

use crate::contender::{Contender, Outcome};
use crate::lineup::{Course, EngineName, Entry};
use crate::rounds::Run;

/// The cache level of the packets when a pass begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cache {
    /// First- or second-level cache: a pass over the same packets has just ended.
    Warm,
    /// No cache: every line of every packet was flushed. The engine's tables stay warm, and so does the array
    /// of frames or mbufs that a driver has just filled.
    Cold,
}

/// The engines and cache states of a race.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Engines that take part.
    pub(crate) engines: Vec<EngineName>,
    /// Cache states to measure.
    pub(crate) caches: Vec<Cache>,
}

/// The result of one contender in one cache state.
pub(crate) struct Lap<'a> {
    /// The contender and its labels.
    pub(crate) entry: &'a Entry<'a>,
    /// The cache state of the packets.
    pub(crate) cache: Cache,
    /// Nanoseconds per packet.
    pub(crate) ns_per_packet: Quartiles,
    /// The outcome of the contender's last pass.
    pub(crate) outcome: Outcome,
}

/// Races all contenders of `plan` over `course`, and passes each result to `finish`.
///
/// # Errors
/// If the machine's load cannot be read, or `finish` fails.
pub(crate) fn race(
    course: &Course,
    plan: &Plan,
    run: &Run,
    mut finish: impl FnMut(Lap<'_>) -> Result<()>,
) -> Result<()> {
    let mut entries = course.entries(&plan.engines);
    let name = |entry: &Entry<'_>| format!("{} {}", entry.engine.name(), entry.variant);
    let turns = run.measure(&mut entries, name, |entry| {
        let packets = course.traffic(entry.checksum).len() as f64;
        let turns = plan.caches.iter().map(|cache| turn(entry.contender.as_mut(), *cache, packets));
        Ok(turns.collect::<Vec<_>>())
    })?;
    for (entry, turns) in entries.iter().zip(&turns) {
        for (place, cache) in plan.caches.iter().enumerate() {
            let timings = turns.iter().flat_map(|turn| turn[place].iter().copied());
            let (ns_per_packet, outcome) = (Quartiles::of(timings), entry.contender.outcome());
            finish(Lap { entry, cache: *cache, ns_per_packet, outcome })?;
        }
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
