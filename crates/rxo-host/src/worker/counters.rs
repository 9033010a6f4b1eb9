//! The counters of a host.

use rxo_coalesce::Counters;
use rxo_device::{SinkCounters, SourceCounters};
use rxo_frame::Duration;

use crate::fast::FastCounters;
use crate::link::{Conflict, LinkCounters};
use crate::stages::StageTimes;

rxo_frame::counters! {
    /// Counters of segments and connections since the host was created.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct TcpCounters {
        /// Deliveries that went to a backlog because an application held the lock.
        pub put_off: u64,
        /// Deliveries that a full backlog took only in part; their senders retransmit.
        pub backlog_drops: u64,
        /// GSO frames that the device refused, and that were sent as single segments.
        pub refused_sends: u64,
        /// Number of times that connections sent more although nothing had left the device's queue for 100
        /// ms.
        pub stalls: u64,
        /// Number of times that received data was copied because the device needed its frames back.
        pub copied_out: u64,
        /// Segments without a connection that opened none.
        pub strangers: u64,
        /// Deliveries that belong to another shard, and were dropped: the device does not select the queue by
        /// [`shard_of`](rxo_wire::shard_of()), or has only just begun to.
        pub misplaced: u64,
        /// Resets sent in answer to segments without a connection.
        pub resets: u64,
        /// SYNs answered by a cookie, because too many connections were opening.
        pub cookies_sent: u64,
        /// Connections opened by a cookie.
        pub cookies_taken: u64,
        /// SYNs dropped because a listener's backlog, or the host, was full.
        pub syns_dropped: u64,
        /// Number of SYNs that were dropped because there was no memory for a connection. They are counted in
        /// `syns_dropped`, too.
        pub syns_without_memory: u64,
        /// Segments dropped because there was no memory for their data: more connections hold data than
        /// [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes) is enough for. Their senders
        /// retransmit.
        pub texts_without_memory: u64,
        /// Connections in TIME-WAIT that were evicted because there were too many.
        pub time_waits_given_up: u64,
        /// Orphans that were reset because there were too many.
        pub orphans_reset: u64,
    }
}

/// Totals since the host was created, and current values.
#[derive(Clone, Debug, Default)]
pub struct HostCounters {
    /// Counters of the frames received from the device.
    pub source: SourceCounters,
    /// Counters of the packets passed to the device; a GSO frame counts as one.
    pub sink: SinkCounters,
    /// Counters of the receive engine.
    pub engine: Counters,
    /// Counters of the link: everything that is not TCP, and the gate.
    pub link: LinkCounters,
    /// The first claim of an address of this host by another station; `None` if there was none.
    /// [`LinkCounters::conflicts`] counts all claims.
    pub conflict: Option<Conflict>,
    /// Number of deliveries passed to connections.
    pub deliveries: u64,
    /// Deliveries to a multicast group that no connection has joined with the same source and ports.
    pub group_strangers: u64,
    /// Counters of segments and connections.
    pub tcp: TcpCounters,
    /// Counters of the fast path.
    pub fast: FastCounters,
    /// The times of the sampled rounds, by stage.
    pub stages: StageTimes,
    /// Number of connections now, without those in TIME-WAIT.
    pub connections: usize,
    /// Number of connections now whose data waits for free space in the device's queue.
    pub waiting_for_device: usize,
    /// Number of orphaned connections now.
    pub orphans: usize,
    /// Free part of [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes) now, in bytes.
    pub memory_left_bytes: u64,
    /// Number of connections in TIME-WAIT now.
    pub time_waits: usize,
    /// Time for which a peer may still retransmit its FIN because the ACK of it was lost; zero if that is
    /// unlikely. A host that stops earlier leaves such a peer without an answer.
    pub last_acks_left: Duration,
    /// Number of connections with a running timer now.
    pub timers: usize,
}

impl HostCounters {
    /// Returns the counters of two shards of a host together. `conflict` is the claim of either shard, and
    /// `last_acks_left` the longer of both times.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            source: self.source.plus(&other.source),
            sink: self.sink.plus(&other.sink),
            engine: self.engine.plus(&other.engine),
            link: self.link.plus(&other.link),
            conflict: self.conflict.or(other.conflict),
            deliveries: self.deliveries + other.deliveries,
            group_strangers: self.group_strangers + other.group_strangers,
            tcp: self.tcp.plus(&other.tcp),
            fast: self.fast.plus(&other.fast),
            stages: self.stages.plus(&other.stages),
            connections: self.connections + other.connections,
            waiting_for_device: self.waiting_for_device + other.waiting_for_device,
            orphans: self.orphans + other.orphans,
            memory_left_bytes: self.memory_left_bytes + other.memory_left_bytes,
            time_waits: self.time_waits + other.time_waits,
            last_acks_left: self.last_acks_left.max(other.last_acks_left),
            timers: self.timers + other.timers,
        }
    }
}
