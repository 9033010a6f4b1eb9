//! What was measured, for people and for machines.

mod table;
mod targets;

use serde::Serialize;

use crate::lineup::{Checksum, EngineName};
use crate::machine::Machine;
use crate::race::{Cache, Lap};

pub(crate) use table::print;

/// Everything one run of the benchmark found out.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// One row for each workload, contender and cache state.
    pub(crate) rows: Vec<Row>,
    /// Where.
    pub(crate) machine: Machine,
    /// Packets in a poll.
    pub(crate) batch_frames: usize,
    /// Rounds in which the contenders took turns.
    pub(crate) rounds: usize,
    /// Engines that were asked for and are not in this build, with the remedy.
    pub(crate) left_out: Vec<String>,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// Whose.
    pub(crate) engine: EngineName,
    /// In which configuration.
    pub(crate) variant: &'static str,
    /// Whether that is the configuration one gets without asking for another; one row of an
    /// engine, workload, cache state and checksum has it.
    pub(crate) is_default: bool,
    /// Over which workload.
    pub(crate) workload: &'static str,
    /// With the packets where.
    pub(crate) cache: Cache,
    /// With payloads read or not.
    pub(crate) checksum: Checksum,
    /// The median, in nanoseconds.
    pub(crate) ns_per_packet: f64,
    /// The lower quartile.
    pub(crate) ns_low: f64,
    /// The upper quartile.
    pub(crate) ns_high: f64,
    /// Packets in for each delivery out, single packets included.
    pub(crate) packets_per_aggregate: f64,
    /// The most that the issue allows, in nanoseconds; `null` where it says nothing.
    pub(crate) target_ns: Option<f64>,
    /// How many times longer DPDK's best configuration took; `null` where it was not measured.
    pub(crate) times_faster_than_dpdk: Option<f64>,
}

impl Row {
    /// The row of one lap.
    pub(crate) fn new(workload: &'static str, lap: &Lap<'_>) -> Self {
        let (entry, cache) = (lap.entry, lap.cache);
        let is_rxo = entry.engine == EngineName::Rxo;
        let target = is_rxo.then(|| targets::target(workload, cache, entry)).flatten();
        Self {
            engine: entry.engine,
            variant: entry.variant,
            is_default: entry.is_default,
            workload,
            cache,
            checksum: entry.checksum,
            ns_per_packet: lap.ns_per_packet.median,
            ns_low: lap.ns_per_packet.low,
            ns_high: lap.ns_per_packet.high,
            packets_per_aggregate: lap.outcome.packets_per_aggregate(),
            target_ns: target,
            times_faster_than_dpdk: None,
        }
    }
}

impl Report {
    /// Sets rxo's default row with trusted checksums beside DPDK's best row of the same kind. Rows
    /// with pool buffers stay out of it: they give every buffer back, DPDK's do not.
    pub(crate) fn compare(&mut self) {
        for index in 0..self.rows.len() {
            let row = &self.rows[index];
            let is_ours = row.engine == EngineName::Rxo && row.is_default;
            if is_ours && row.checksum == Checksum::Trusted {
                let best = self.best_dpdk(row.workload, row.cache);
                self.rows[index].times_faster_than_dpdk =
                    best.map(|best| best / self.rows[index].ns_per_packet);
            }
        }
    }

    fn best_dpdk(&self, workload: &str, cache: Cache) -> Option<f64> {
        let comparable = |row: &&Row| {
            row.engine == EngineName::Dpdk && row.workload == workload && row.cache == cache
        };
        self.rows.iter().filter(comparable).map(|row| row.ns_per_packet).reduce(f64::min)
    }
}
