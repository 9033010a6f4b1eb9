//! The figures of one measurement of a path.

use serde::Serialize;

use crate::losses::Losses;

/// The figures of one bulk transfer and one request/response exchange over one path.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) gbit_per_s: f64,
    pub(crate) cpu_s_per_gb: f64,
    /// Number of deliveries to the host's IP layer per 1,000 packets that the peer sent.
    pub(crate) deliveries_per_1000_packets: f64,
    pub(crate) segments_per_aggregate: f64,
    /// Time from the arrival of an aggregate's first frame to its delivery; `None` on the kernel's own paths, which do
    /// not report hold times.
    pub(crate) hold_us: Option<HoldTime>,
    pub(crate) rr_per_s: f64,
    pub(crate) rr_p50_us: f64,
    pub(crate) cpu_parts: CpuParts,
    pub(crate) losses: Losses,
    /// `true` if every byte arrived as it was sent.
    pub(crate) hash_ok: bool,
}

/// Quantiles of the time for which frames were held, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HoldTime {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Processor time by thread, in seconds per 10^9 bytes. Time that the kernel spends on one thread with work for
/// the other end counts as time of that thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct CpuParts {
    pub(crate) sender: f64,
    pub(crate) receiver: f64,
    /// Processor time of rxo's worker, if the path includes a worker, and of the demo itself.
    pub(crate) rest: f64,
    pub(crate) ksoftirqd: f64,
}
