//! A contender: one engine in one configuration, loaded with one workload.
//!
//! A contender is prepared, optionally made cold, and then processes all its packets once. Only the last step
//! is timed. `prepare` does a driver's work for all contenders alike: it fills buffers, sets lengths, and
//! makes an array of packets.

#[cfg(feature = "dpdk")]
mod dpdk;
mod rxo;
#[cfg(feature = "tun-rs")]
mod tun_rs;

#[cfg(feature = "dpdk")]
pub(crate) use dpdk::{Caller, Dpdk};
pub(crate) use rxo::{Acks, Rxo, SEED, policy};
#[cfg(feature = "tun-rs")]
pub(crate) use tun_rs::TunRs;

/// Packets in one poll, for every engine.
pub(crate) const BATCH_FRAMES: usize = 32;

/// An engine that can take part in a race.
pub(crate) trait Contender {
    /// Restores the packets to their state on arrival. Not timed.
    fn prepare(&mut self);

    /// Flushes every line of every packet from the caches. Not timed.
    fn make_cold(&self);

    /// Processes every packet once, in batches of [`BATCH_FRAMES`], and delivers it. Timed.
    fn pass(&mut self);

    /// Returns the result of the last pass.
    fn outcome(&self) -> Outcome;
}

/// The result of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Packets delivered: aggregates and single packets.
    pub(crate) deliveries: u64,
    /// Number of original packets in the deliveries.
    pub(crate) frames: u64,
}

impl Outcome {
    /// Returns the packets per delivery, including single packets.
    pub(crate) fn packets_per_aggregate(self) -> f64 {
        self.frames as f64 / self.deliveries.max(1) as f64
    }
}
