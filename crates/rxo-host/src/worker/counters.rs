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
        /// Number of deliveries that were put into a backlog because an application held the connection's lock.
        pub put_off: u64,
        /// Number of deliveries that lost at least one segment because a connection's backlog was full. The
        /// senders retransmit the dropped segments.
        pub backlog_drops: u64,
        /// Number of GSO frames that the device refused, and that were sent as single segments.
        pub refused_sends: u64,
        /// Number of times that the host added data to the device's queue although no packet had left the queue
        /// for 100 ms.
        pub stalls: u64,
        /// Number of times that received data was copied because the device needed its frames back.
        pub copied_out: u64,
        /// Number of segments that belonged to no connection and did not open one.
        pub strangers: u64,
        /// Number of deliveries that were dropped because they belong to another shard: the device does not
        /// select the queue by [`shard_of`](rxo_wire::shard_of()), or did not do so yet when the frames
        /// arrived.
        pub misplaced: u64,
        /// Number of resets sent in answer to segments without a connection.
        pub resets: u64,
        /// Number of SYNs that were answered with a SYN cookie, because too many connections were half-open.
        pub cookies_sent: u64,
        /// Number of connections that were opened by a returned SYN cookie.
        pub cookies_taken: u64,
        /// Number of SYNs that were dropped because a listener's backlog was full, or a limit of the host was
        /// reached.
        pub syns_dropped: u64,
        /// Number of SYNs that were dropped because there was no memory for a connection. These SYNs are also
        /// counted in `syns_dropped`.
        pub syns_without_memory: u64,
        /// Number of segments that were dropped because there was no memory for their data:
        /// [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes) is too small for the number of
        /// connections that hold data. The senders retransmit these segments.
        pub texts_without_memory: u64,
        /// Number of connections in TIME-WAIT that were evicted because there were too many.
        pub time_waits_given_up: u64,
        /// Number of orphans that were reset because there were too many. An orphan is a connection that the
        /// application has dropped and that is not closed yet.
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
    /// Counters of the link: frames that are not TCP, and deliveries that the gate refused.
    pub link: LinkCounters,
    /// The first claim of an address of this host by another station; `None` if there was none.
    /// [`LinkCounters::conflicts`] counts all claims.
    pub conflict: Option<Conflict>,
    /// Number of deliveries passed to connections.
    pub deliveries: u64,
    /// Number of deliveries to a multicast group that were dropped, because no connection has joined the group
    /// with this source and these ports.
    pub group_strangers: u64,
    /// Counters of segments and connections.
    pub tcp: TcpCounters,
    /// Counters of the fast path.
    pub fast: FastCounters,
    /// The times of the sampled calls of [`Host::turn`](crate::Host::turn), by stage.
    pub stages: StageTimes,
    /// The current number of connections, without connections in TIME-WAIT.
    pub connections: usize,
    /// The current number of connections whose data waits for free space in the device's queue.
    pub waiting_for_device: usize,
    /// The current number of orphans: connections that the application has dropped and that are not closed yet.
    pub orphans: usize,
    /// The part of [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes) that is currently free, in
    /// bytes.
    pub memory_left_bytes: u64,
    /// The current number of connections in TIME-WAIT.
    pub time_waits: usize,
    /// The time for which a peer may still retransmit its FIN because the ACK of the FIN was lost; zero if this
    /// is unlikely. A host that stops earlier does not answer such a FIN.
    pub last_acks_left: Duration,
    /// The current number of connections with a running timer.
    pub timers: usize,
}

impl HostCounters {
    /// Returns the sums of the counters of two shards of a host. `conflict` is the claim that the first shard
    /// has seen, or else the second. `last_acks_left` is the longer of both durations.
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
