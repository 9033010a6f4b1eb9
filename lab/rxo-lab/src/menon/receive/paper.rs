//! Values that the paper's text states. Values that can only be read from its drawings are left out.

/// One of the paper's systems (figure 7 and section 5.1).
pub(in crate::menon) struct System {
    pub(super) name: &'static str,
    /// Gain of Receive Aggregation alone, in percent of throughput.
    pub(in crate::menon) aggregation_gain: f64,
    /// Gain of both optimizations, in percent of CPU-scaled throughput.
    pub(in crate::menon) gain: f64,
}

pub(in crate::menon) const SYSTEMS: [System; 3] = [
    System { name: "paper: Linux UP", aggregation_gain: 26.0, gain: 45.0 },
    System { name: "paper: Linux SMP", aggregation_gain: 36.0, gain: 67.0 },
    System { name: "paper: Xen", aggregation_gain: 45.0, gain: 86.0 },
];

/// Shares of all cycles in figure 3 (section 2.2), in percent: protocol (rx, tx), buffers and non-protocol,
/// driver, per byte. The remainder is misc.
pub(super) const SHARES: [f64; 4] = [21.0, 25.0, 21.0, 17.0];

/// Gain at 400 connections, in percent (figure 12).
pub(in crate::menon) const GAIN_AT_400: f64 = 40.0;

/// Requests per second, original and optimized (table 1).
pub(in crate::menon) const REQUESTS: [(&str, [f64; 2]); 3] = [
    ("paper: Linux UP", [7_874.0, 7_894.0]),
    ("paper: Linux SMP", [7_970.0, 7_985.0]),
    ("paper: Xen", [6_965.0, 6_953.0]),
];
