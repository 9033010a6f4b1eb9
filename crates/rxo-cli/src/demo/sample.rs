//! One measurement of one path.

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
    /// Segments the peer's kernel sent more than once.
    pub(crate) retransmissions: u64,
    /// Frames lost between the wire and rxo (the host's interface, for the kernel's paths).
    pub(crate) ring_drops: u64,
    /// Whether every byte arrived as it was sent.
    pub(crate) hash_ok: bool,
}

/// How long segments were held, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HoldTime {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}
