//! What is measured: one engine in one configuration, loaded with one workload.
//!
//! A contender is prepared, perhaps made cold, and then passes over all its packets once; only the
//! pass is timed. What a driver would have done before (buffers filled, lengths known, an array of
//! packets in hand) happens in `prepare`, for all contenders alike.

#[cfg(feature = "dpdk")]
mod dpdk;
mod rxo;
#[cfg(feature = "tun-rs")]
mod tun_rs;

#[cfg(feature = "dpdk")]
pub(crate) use dpdk::{Dpdk, Prefetch};
pub(crate) use rxo::{Acks, Rxo};
#[cfg(feature = "tun-rs")]
pub(crate) use tun_rs::TunRs;

/// Packets in one poll, for every engine.
pub(crate) const BATCH_FRAMES: usize = 32;

/// An engine that can be raced.
pub(crate) trait Contender {
    /// Puts everything back to how the packets arrived. Not timed.
    fn prepare(&mut self);

    /// Throws every line of every packet out of the caches. Not timed.
    fn make_cold(&self);

    /// Takes every packet once, in batches of [`BATCH_FRAMES`], and delivers it. Timed.
    fn pass(&mut self);

    /// What came out of the last pass.
    fn outcome(&self) -> Outcome;
}

/// What came out of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Packets handed on: aggregates and single ones.
    pub(crate) deliveries: u64,
    /// Packets as they arrived behind them.
    pub(crate) frames: u64,
}

impl Outcome {
    /// Packets per delivery, single ones included.
    pub(crate) fn packets_per_aggregate(self) -> f64 {
        self.frames as f64 / self.deliveries.max(1) as f64
    }
}
