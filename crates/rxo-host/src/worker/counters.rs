//! The counters of a host.

use rxo_coalesce::Counters;
use rxo_device::{SinkCounters, SourceCounters};
use rxo_frame::Duration;

use crate::fast::FastCounters;
use crate::link::{Conflict, LinkCounters};
use crate::stages::StageTimes;

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
    /// The first claim of an address of this host by another station; [`LinkCounters::conflicts`] counts all
    /// claims.
    pub conflict: Option<Conflict>,
    /// Number of deliveries passed to connections.
    pub deliveries: u64,
    /// Number of deliveries that went to a backlog because an application held the lock.
    pub put_off: u64,
    /// Number of deliveries of which a full backlog dropped a part; their senders retransmit.
    pub backlog_drops: u64,
    /// Number of GSO frames that the device refused and that were sent as single segments.
    pub refused_sends: u64,
    /// Number of times that the device's queue made no progress for 100 ms, so that connections stopped
    /// waiting for it.
    pub stalls: u64,
    /// Number of times that received data was copied because the device needed its frames.
    pub copied_out: u64,
    /// Number of segments without a connection that did not open one.
    pub strangers: u64,
    /// Number of deliveries to a multicast group that belong to no connection, by destination or source port.
    pub group_strangers: u64,
    /// Number of deliveries dropped because they belong to another shard: the device does not steer by
    /// [`shard_of`](rxo_wire::shard_of()), or has only just begun to.
    pub misplaced: u64,
    /// Number of resets sent for segments without a connection.
    pub resets: u64,
    /// Number of SYNs answered with a SYN cookie, because too many connections were half-open.
    pub cookies_sent: u64,
    /// Number of connections opened by a returned SYN cookie.
    pub cookies_taken: u64,
    /// Number of SYNs dropped because a listener's backlog, or the host, was full.
    pub syns_dropped: u64,
    /// Number of SYNs dropped for lack of memory, also counted in `syns_dropped`.
    pub syns_without_memory: u64,
    /// Number of segments dropped for lack of memory for their data, because more connections hold data than
    /// [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes) allows; their senders retransmit.
    pub texts_without_memory: u64,
    /// Number of connections in TIME-WAIT that were evicted because there were too many.
    pub time_waits_given_up: u64,
    /// Number of orphaned connections that were reset because there were too many.
    pub orphans_reset: u64,
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
