//! The paper's values (section 4.1).

/// Figure 5: receivers, and the average time of a transfer with TCP-PARO and without, in seconds.
pub(super) const TIMES: [(usize, [f64; 2]); 2] = [(88, [2.93, 3.02]), (168, [3.09, 3.40])];
/// The least time in which its link carries the file, in seconds.
pub(super) const LEAST_S: f64 = 2.7;
/// From 88 to 168 receivers, with TCP-PARO and without, in percent.
pub(super) const GROWTH: [f64; 2] = [5.6, 12.6];
/// What TCP-PARO saves of the cycles and of the instructions of an acknowledgement ("nearly 50 %"), in percent.
pub(super) const SAVED: f64 = 50.0;
/// What it saves of synchronization, in percent.
pub(super) const SYNC_SAVED: f64 = 50.0;
pub(super) const FEWEST: usize = 88;
pub(super) const MOST: usize = 168;
/// Figure 8 against Figure 6: what several cores change, at 160 receivers.
pub(super) const SEVERAL_CORES: [&str; 3] = [
    "on several cores an ACK without TCP-PARO misses the second cache 24 % more often than on one core",
    "with TCP-PARO it does so 4 % more often",
    "without it these misses cost 12 % more cycles",
];
