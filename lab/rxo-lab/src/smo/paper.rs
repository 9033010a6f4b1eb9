//! The paper's values (section 4.1).

/// Figure 5: number of receivers, and the average transfer time with and without TCP-PARO, in seconds.
pub(super) const TIMES: [(usize, [f64; 2]); 2] = [(88, [2.93, 3.02]), (168, [3.09, 3.40])];
/// Minimum time in which the paper's link carries the file, in seconds.
pub(super) const LEAST_S: f64 = 2.7;
/// Growth of the transfer time from 88 to 168 receivers, with and without TCP-PARO, in percent.
pub(super) const GROWTH: [f64; 2] = [5.6, 12.6];
/// Saving of TCP-PARO in cycles and instructions of an ACK ("nearly 50 %"), in percent.
pub(super) const SAVED: f64 = 50.0;
/// Saving of TCP-PARO in synchronization, in percent.
pub(super) const SYNC_SAVED: f64 = 50.0;
pub(super) const FEWEST: usize = 88;
pub(super) const MOST: usize = 168;
/// Statements on the effect of several cores at 160 receivers (figure 8 against figure 6).
pub(super) const SEVERAL_CORES: [&str; 3] = [
    "on several cores an ACK without TCP-PARO misses the second cache 24 % more often than on one core",
    "with TCP-PARO it does so 4 % more often",
    "without it these misses cost 12 % more cycles",
];
