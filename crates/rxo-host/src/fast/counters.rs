//! The counters of the fast path.

use std::array;

use super::{Account, FallbackReason, FastModules};
use crate::link::IpCidr;

/// Totals of the fast path since the host was created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FastCounters {
    /// The modules that are on now.
    pub modules: FastModules,
    /// Number of pure ACKs that were passed to connections without a frame.
    pub consumed: u64,
    /// Number of consumed ACKs with the same ACK number and window as the previous ACK.
    pub duplicates: u64,
    /// Number of calls to connections; one call passes all ACKs of a connection in a batch.
    pub calls: u64,
    /// Number of consumed ACKs that were read in the device's memory, without taking a buffer.
    pub unseen: u64,
    /// Number of frames that took the slow path, by reason; see [`FastCounters::fallback`].
    pub fallbacks: [u64; FallbackReason::COUNT],
    /// Number of ACKs that waited in a connection's ring because an application held the lock.
    pub ring_pushed: u64,
    /// Number of ACKs that were overwritten in a ring by newer ones.
    pub ring_overwritten: u64,
    /// The greatest number of ACKs that waited in one ring.
    pub ring_most: u32,
    /// Number of ACKs that were put into a backlog, because the ring was full and none of its ACKs could be
    /// overwritten.
    pub ring_refused: u64,
    /// Number of frames that the filter dropped.
    pub filtered: u64,
    /// Number of SYNs of new connections.
    pub syns: u64,
    /// The current number of half-open flows; at most 8,192.
    pub half_open: u64,
    /// Number of times that the half-open flows of one network reached 256.
    pub syn_alarms: u64,
    /// The network that currently has the most half-open flows, and their number; `None` if there are no
    /// half-open flows.
    pub worst_network: Option<(IpCidr, u64)>,
    /// The accounts with the most bytes, the largest first. The last account has no name: it counts the frames
    /// for which no account could be added, because the maximum number of accounts was reached.
    pub accounts: Vec<Account>,
}

impl FastCounters {
    /// Returns the number of frames that took the slow path for `reason`.
    #[must_use]
    pub const fn fallback(&self, reason: FallbackReason) -> u64 {
        self.fallbacks[reason as usize]
    }

    /// Returns the sum of the totals of two shards of a host. Each shard reports only its largest accounts, so the
    /// sum of an account lacks the frames of a shard in which the account is not among the largest.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let networks = self.worst_network.into_iter().chain(other.worst_network);
        Self {
            modules: self.modules.with(other.modules),
            consumed: self.consumed + other.consumed,
            duplicates: self.duplicates + other.duplicates,
            calls: self.calls + other.calls,
            unseen: self.unseen + other.unseen,
            fallbacks: array::from_fn(|reason| self.fallbacks[reason] + other.fallbacks[reason]),
            ring_pushed: self.ring_pushed + other.ring_pushed,
            ring_overwritten: self.ring_overwritten + other.ring_overwritten,
            ring_most: self.ring_most.max(other.ring_most),
            ring_refused: self.ring_refused + other.ring_refused,
            filtered: self.filtered + other.filtered,
            syns: self.syns + other.syns,
            half_open: self.half_open + other.half_open,
            syn_alarms: self.syn_alarms + other.syn_alarms,
            worst_network: networks.max_by_key(|(_, half_open)| *half_open),
            accounts: Account::together(&self.accounts, &other.accounts),
        }
    }

    /// Number of frames that took the slow path, for any reason.
    #[must_use]
    pub fn fallbacks(&self) -> u64 {
        self.fallbacks.iter().sum()
    }
}
