//! The paper's values.

/// File sizes of Table 1 in bytes, with their names there.
pub(super) const SIZES: [(u64, &str); 5] = [
    (512 << 10, "512 KB"),
    (1 << 20, "1 MB"),
    (2 << 20, "2 MB"),
    (4 << 20, "4 MB"),
    (8 << 20, "8 MB"),
];

/// The claims about the savings at these sizes, in the same order.
pub(super) const CLAIMS: [&str; 5] =
    ["paro.table1.512k", "paro.table1.1m", "paro.table1.2m", "paro.table1.4m", "paro.table1.8m"];

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

/// The cycles of a request (figure 1) that network RX and memory operations take, in percent.
pub(super) const MIX: [f64; 2] = [20.0, 18.0];
/// File size of Figures 3 and 4, in bytes.
pub(super) const PROFILED_BYTES: u64 = 2 << 20;
