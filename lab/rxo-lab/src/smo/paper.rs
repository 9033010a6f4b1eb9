//! The paper's values (section 4.1).

/// Figure 5: number of receivers, and the average transfer time with and without TCP-PARO, in seconds.
pub(super) const TIMES: [(usize, [f64; 2]); 2] = [(88, [2.93, 3.02]), (168, [3.09, 3.40])];
/// Minimum time in which the paper's link carries the file, in seconds.
pub(super) const LEAST_S: f64 = 2.7;
/// Growth of the transfer time from 88 to 168 receivers, with and without TCP-PARO, in percent.
pub(super) const GROWTH: [f64; 2] = [5.6, 12.6];
pub(super) const FEWEST: usize = 88;
pub(super) const MOST: usize = 168;
