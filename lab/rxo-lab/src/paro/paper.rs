//! The paper's values.

/// Sizes of files, in bytes, and their names in Table 1.
pub(super) const SIZES: [(u64, &str); 5] = [
    (512 << 10, "512 KB"),
    (1 << 20, "1 MB"),
    (2 << 20, "2 MB"),
    (4 << 20, "4 MB"),
    (8 << 20, "8 MB"),
];

/// Table 1: million cycles a request without and with TCP-PARO, and what that saves, in percent.
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

/// What Table 1 says of each of [`SIZES`].
pub(super) const SAVES: [&str; 5] = [
    "TCP-PARO saves 14.0 % of the cycles of a request of 512 KB (asked for: at least)",
    "TCP-PARO saves 14.7 % of the cycles of a request of 1 MB (asked for: at least)",
    "TCP-PARO saves 15.3 % of the cycles of a request of 2 MB (asked for: at least)",
    "TCP-PARO saves 16.1 % of the cycles of a request of 4 MB (asked for: at least)",
    "TCP-PARO saves 16.7 % of the cycles of a request of 8 MB (asked for: at least)",
];

/// Figure 1: shares of a request's cycles, in percent: the paper's 20 and 18, and a quarter less or more.
pub(super) const RX_SHARE: std::ops::RangeInclusive<f64> = 15.0..=25.0;
pub(super) const MEMORY_SHARE: std::ops::RangeInclusive<f64> = 13.5..=22.5;
/// Pure ACKs among the packets that arrive, in percent.
pub(super) const PURE_ACKS: f64 = 99.0;

/// The size of Figures 3 and 4.
pub(super) const PROFILED_BYTES: u64 = 2 << 20;
/// Figure 3, in cycles: what is saved in driver RX, network RX and memory, in percent.
pub(super) const SAVED_CYCLES: [f64; 3] = [25.0, 53.0, 20.0];
/// Figure 4, in instructions: network RX and memory. The text says nothing of driver RX.
pub(super) const SAVED_INSTRUCTIONS: [Option<f64>; 3] = [None, Some(51.0), Some(24.0)];
