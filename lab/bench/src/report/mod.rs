//! The report of a race.

mod targets;

use rxo_demo::stats::Quartiles;
use serde::Serialize;

use crate::lineup::{Cache, Checksum, EngineName, Entry, READS_TYPES};

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// A row for each workload, contender and cache state.
    pub(crate) rows: Vec<Row>,
    /// Packets per poll.
    pub(crate) batch_frames: usize,
    /// Requested engines that this build lacks, with the remedy.
    pub(crate) left_out: Vec<String>,
}

/// The result of one contender.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The contender's engine.
    pub(crate) engine: EngineName,
    /// Name of the configuration.
    pub(crate) variant: &'static str,
    /// `true` for the engine's default configuration. Exactly one row of each engine, workload, cache state
    /// and checksum treatment has it.
    pub(crate) is_default: bool,
    /// Name of the workload.
    pub(crate) workload: &'static str,
    /// Cache state of the packets.
    pub(crate) cache: Cache,
    /// Treatment of checksums.
    pub(crate) checksum: Checksum,
    pub(crate) ns_per_packet: Quartiles,
    /// Packets per delivery, including single packets.
    pub(crate) packets_per_aggregate: f64,
    /// Target in nanoseconds per packet; `null` if there is none.
    pub(crate) target_ns: Option<f64>,
    /// Ratio of the time of DPDK's best configuration to the time of this row; `null` if DPDK was not
    /// measured.
    pub(crate) times_faster_than_dpdk: Option<f64>,
    /// Target of that ratio; `null` if there is none.
    pub(crate) target_times: Option<f64>,
}

impl Row {
    /// Makes the row of an entry in one cache state.
    pub(crate) fn new(
        workload: &'static str,
        entry: &Entry<'_>,
        cache: Cache,
        ns_per_packet: Quartiles,
    ) -> Self {
        let is_rxo = entry.engine == EngineName::Rxo;
        Self {
            engine: entry.engine,
            variant: entry.variant,
            is_default: entry.is_default,
            workload,
            cache,
            checksum: entry.checksum,
            ns_per_packet,
            packets_per_aggregate: entry.contender.outcome().packets_per_aggregate(),
            target_ns: is_rxo.then(|| targets::target(workload, cache, entry)).flatten(),
            times_faster_than_dpdk: None,
            target_times: None,
        }
    }
}

/// Sets the ratio of rxo's default row with trusted checksums to DPDK's best row of the same kind. Rows
/// with pool buffers are not compared: they return every buffer, which DPDK's do not.
pub(crate) fn compare(rows: &mut [Row]) {
    for index in 0..rows.len() {
        let row = &rows[index];
        let is_ours = row.engine == EngineName::Rxo && row.is_default;
        if is_ours && row.checksum == Checksum::Trusted {
            let best = best_dpdk(rows, row.workload, row.cache);
            let row = &mut rows[index];
            row.times_faster_than_dpdk = best.map(|best| best / row.ns_per_packet.median);
            row.target_times = targets::times_faster(row.workload, row.cache);
        }
    }
}

fn best_dpdk(rows: &[Row], workload: &str, cache: Cache) -> Option<f64> {
    let reads_types = workload == targets::READING;
    let comparable = |row: &&Row| {
        let is_dpdk = row.engine == EngineName::Dpdk && row.workload == workload;
        is_dpdk && row.cache == cache && (row.variant == READS_TYPES) == reads_types
    };
    rows.iter().filter(comparable).map(|row| row.ns_per_packet.median).reduce(f64::min)
}
