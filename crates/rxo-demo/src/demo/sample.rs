//! One measurement of one path.

use serde::Serialize;

use crate::losses::Losses;

/// The figures of one bulk transfer and one request/response exchange over one path.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) gbit_per_s: f64,
    pub(crate) cpu_s_per_gb: f64,
    /// What the host's IP layer was given, for every 1,000 packets that the peer sent.
    pub(crate) deliveries_per_1000_packets: f64,
    pub(crate) segments_per_aggregate: f64,
    /// From a held aggregate's first arrival to its delivery; only rxo can say.
    pub(crate) hold_us: Option<HoldTime>,
    pub(crate) rr_per_s: f64,
    pub(crate) rr_p50_us: f64,
    pub(crate) cpu_parts: CpuParts,
    pub(crate) losses: Losses,
    /// Whether every byte arrived as it was sent.
    pub(crate) hash_ok: bool,
}

/// How long segments were held, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HoldTime {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Whose threads used the processor, in seconds for 10^9 bytes. What the kernel does for the
/// other end on the back of a thread is in that thread's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct CpuParts {
    pub(crate) sender: f64,
    pub(crate) receiver: f64,
    /// rxo's worker, where there is one, and what the demo itself does.
    pub(crate) rest: f64,
    pub(crate) ksoftirqd: f64,
}
