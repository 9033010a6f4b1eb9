//! The paper's values.

/// File sizes in bytes, with their names in Table 1.
pub(super) const SIZES: [(u64, &str); 5] = [
    (512 << 10, "512 KB"),
    (1 << 20, "1 MB"),
    (2 << 20, "2 MB"),
    (4 << 20, "4 MB"),
    (8 << 20, "8 MB"),
];

/// Returns the values of Table 1: million cycles per request without and with TCP-PARO, and the saving in
/// percent. `None` for other file sizes.
pub(super) const fn table_1(file_bytes: u64) -> Option<[f64; 3]> {
    Some(match file_bytes >> 19 {
        1 => [0.80, 0.69, 14.0],
        2 => [1.36, 1.16, 14.7],
        4 => [2.40, 2.04, 15.3],
        8 => [4.60, 3.86, 16.1],
        16 => [9.10, 7.58, 16.7],
        _ => return None,
    })
}

/// The paper's claims from Table 1, for each of [`SIZES`].
pub(super) const SAVES: [&str; 5] = [
    "TCP-PARO saves 14.0 % of the cycles of a request of 512 KB",
    "TCP-PARO saves 14.7 % of the cycles of a request of 1 MB",
    "TCP-PARO saves 15.3 % of the cycles of a request of 2 MB",
    "TCP-PARO saves 16.1 % of the cycles of a request of 4 MB",
    "TCP-PARO saves 16.7 % of the cycles of a request of 8 MB",
];

/// Accepted share of driver RX and network RX in a request's cycles (figure 1), in percent: the paper's 20
/// and 18, with a margin of a quarter.
pub(super) const RX_SHARE: std::ops::RangeInclusive<f64> = 15.0..=25.0;
pub(super) const MEMORY_SHARE: std::ops::RangeInclusive<f64> = 13.5..=22.5;
/// The cycles of a request (figure 1) that network RX and memory operations take, in percent.
pub(super) const MIX: [f64; 2] = [20.0, 18.0];
/// Growth of the saving from files of 512 KB to files of 8 MB (Table 1), in percentage points.
pub(super) const GROWTH_POINTS: f64 = 16.7 - 14.0;
/// The part of a request's processor time that the fast path leaves at 2 MB (Table 1).
pub(super) const LEFT: f64 = 1.0 - 0.153;
/// Share of pure ACKs in the received packets, in percent.
pub(super) const PURE_ACKS: f64 = 99.0;

/// File size of Figures 3 and 4, in bytes.
pub(super) const PROFILED_BYTES: u64 = 2 << 20;
/// Savings of cycles in figure 3, in percent: driver RX, network RX and memory.
pub(super) const SAVED_CYCLES: [f64; 3] = [25.0, 53.0, 20.0];
/// Savings of instructions in figure 4, in percent: driver RX, network RX and memory. The text gives no value
/// for driver RX.
pub(super) const SAVED_INSTRUCTIONS: [Option<f64>; 3] = [None, Some(51.0), Some(24.0)];
