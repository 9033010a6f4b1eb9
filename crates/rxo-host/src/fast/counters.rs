//! What the fast path has done.

use super::modules::{Account, HalfOpen};
use super::{FallbackReason, FastModules};

/// Totals of the fast path since the host was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FastCounters {
    /// The modules that are on now.
    pub modules: FastModules,
    /// Pure ACKs that connections took without a frame.
    pub consumed: u64,
    /// Those of them that repeat the one before, by number and window.
    pub duplicates: u64,
    /// Calls of connections, each with all ACKs of one connection in a batch.
    pub calls: u64,
    /// Consumed ACKs whose memory never left the device.
    pub unseen: u64,
    /// Frames that took the ordinary way, by reason; see [`FastCounters::fallback`].
    pub fallbacks: [u64; FallbackReason::ALL.len()],
    /// ACKs that waited in a ring because an application held the lock.
    pub ring_pushed: u64,
    /// ACKs that were overwritten there.
    pub ring_overwritten: u64,
    /// The most ACKs that waited in one ring.
    pub ring_most: u32,
    /// ACKs that waited in a backlog, because they did not fit into the ring and none there may be overwritten.
    pub ring_refused: u64,
    /// Frames that the filter dropped.
    pub filtered: u64,
    /// What the SYN-flood detector found.
    pub half_open: HalfOpen,
    /// The accounts with the most bytes, the largest first.
    pub accounts: Vec<Account>,
    /// What went to no account because there were too many.
    pub unaccounted: Account,
}

impl FastCounters {
    /// How many frames took the ordinary way for `reason`.
    #[must_use]
    pub const fn fallback(&self, reason: FallbackReason) -> u64 {
        self.fallbacks[reason as usize]
    }

    /// Frames that took the ordinary way.
    #[must_use]
    pub fn fallbacks(&self) -> u64 {
        self.fallbacks.iter().sum()
    }
}
