//! The counters of a host.

use rxo_coalesce::Counters;
use rxo_device::{SinkCounters, SourceCounters};
use rxo_frame::Duration;

use crate::fast::FastCounters;
use crate::link::{Conflict, LinkCounters};
use crate::stages::StageTimes;

/// Totals since the host was made, and present values.
#[derive(Clone, Debug, Default)]
pub struct HostCounters {
    /// Frames received from the device.
    pub source: SourceCounters,
    /// Packets given to the device; a GSO frame is one.
    pub sink: SinkCounters,
    /// The engine's counters.
    pub engine: Counters,
    /// The link's counters: what is not TCP, and the gate.
    pub link: LinkCounters,
    /// The first claim of an address of this host by another station; [`LinkCounters::conflicts`] counts all.
    pub conflict: Option<Conflict>,
    /// Deliveries given to connections.
    pub deliveries: u64,
    /// Deliveries that went to a backlog because an application held the lock.
    pub put_off: u64,
    /// Deliveries that a full backlog took only in part; their senders retransmit.
    pub backlog_drops: u64,
    /// GSO frames that the device refused, and that were sent as single segments.
    pub refused_sends: u64,
    /// How often nothing had left the device's queue for 100 ms, and connections sent more all the same.
    pub stalls: u64,
    /// How often text was copied because the device needed its frames.
    pub copied_out: u64,
    /// Segments that had no connection and opened none.
    pub strangers: u64,
    /// Deliveries to a group's address whose port, or whose source port, is no connection's.
    pub group_strangers: u64,
    /// Deliveries that belong to another shard, and were dropped: the device does not steer by
    /// [`shard_of`](rxo_wire::shard_of()), or has just begun to.
    pub misplaced: u64,
    /// Resets sent to strangers.
    pub resets: u64,
    /// SYNs answered by a cookie, because too many connections were opening.
    pub cookies_sent: u64,
    /// Connections opened by a cookie.
    pub cookies_taken: u64,
    /// SYNs dropped because a listener's backlog, or the host, was full.
    pub syns_dropped: u64,
    /// Those of them for which there was no memory.
    pub syns_without_memory: u64,
    /// Segments dropped because there was no memory for their text, while more connections hold text than
    /// [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes) is enough for; their senders retransmit.
    pub texts_without_memory: u64,
    /// Connections in TIME-WAIT that were evicted because there were too many.
    pub time_waits_given_up: u64,
    /// Orphans that were reset because there were too many.
    pub orphans_reset: u64,
    /// The fast path.
    pub fast: FastCounters,
    /// The time of the timed turns by stage.
    pub stages: StageTimes,
    /// Connections now, without those in TIME-WAIT.
    pub connections: usize,
    /// Connections whose text waits now until less is in the device's queue.
    pub waiting_for_device: usize,
    /// Orphans among them.
    pub orphans: usize,
    /// What is left of [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes) now, in bytes.
    pub memory_left_bytes: u64,
    /// Connections in TIME-WAIT now.
    pub time_waits: usize,
    /// How long a peer may still repeat its FIN because the acknowledgement of it was lost; zero if that is unlikely.
    /// A host that ends earlier leaves such a peer without an answer.
    pub last_acks_left: Duration,
    /// Connections with a running timer now.
    pub timers: usize,
}
