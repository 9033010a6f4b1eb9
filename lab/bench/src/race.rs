//! Times all contenders in turn, round after round, so that disturbances of the machine affect all
//! of them alike.

use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;

use crate::contender::{Contender, Outcome};
use crate::lineup::{Course, EngineName, Entry};
use crate::stats::Summary;

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

/// The engines, cache states and rounds of a race.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Engines that take part.
    pub(crate) engines: Vec<EngineName>,
    /// Cache states to measure.
    pub(crate) caches: Vec<Cache>,
    /// Number of rounds; each contender has one turn in a round.
    pub(crate) rounds: usize,
}

/// The result of one contender in one cache state.
pub(crate) struct Lap<'a> {
    /// The contender and its labels.
    pub(crate) entry: &'a Entry<'a>,
    /// The cache state of the packets.
    pub(crate) cache: Cache,
    /// Nanoseconds per packet.
    pub(crate) ns_per_packet: Summary,
    /// The outcome of the contender's last pass.
    pub(crate) outcome: Outcome,
}

/// Races all contenders of `plan` over `course`, and passes each result to `finish`.
pub(crate) fn race(course: &Course, plan: &Plan, mut finish: impl FnMut(Lap<'_>)) {
    let mut entries = course.entries(&plan.engines);
    let mut timings = vec![vec![Vec::new(); plan.caches.len()]; entries.len()];
    for _ in 0..plan.rounds {
        for (entry, timings) in entries.iter_mut().zip(&mut timings) {
            let packets = course.traffic(entry.checksum).len();
            for (cache, timings) in plan.caches.iter().zip(timings) {
                turn(entry.contender.as_mut(), *cache, |ns| timings.push(ns / packets as f64));
            }
        }
    }
    for (entry, timings) in entries.iter().zip(&timings) {
        for (cache, timings) in plan.caches.iter().zip(timings) {
            let ns_per_packet = Summary::of(timings);
            let outcome = entry.contender.outcome();
            finish(Lap { entry, cache: *cache, ns_per_packet, outcome });
        }
    }
}

/// Runs one contender's turn: a warm-up pass, then the timed passes. Calls `timed` with the nanoseconds of
/// each.
fn turn(contender: &mut dyn Contender, cache: Cache, mut timed: impl FnMut(f64)) {
    contender.prepare();
    contender.pass();
    let passes = match cache {
        Cache::Warm => WARM_PASSES,
        Cache::Cold => 1,
    };
    for _ in 0..passes {
        contender.prepare();
        if cache == Cache::Cold {
            contender.make_cold();
        }
        let start = Instant::now();
        contender.pass();
        timed(start.elapsed().as_nanos() as f64);
    }
}

/// Timed passes of a warm turn. A cold turn has one, because a cold pass takes fifty times as long to
/// prepare.
const WARM_PASSES: usize = 3;
