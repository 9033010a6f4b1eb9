//! What a host has done.

use rxo_coalesce::Counters;
use rxo_device::{SinkCounters, SourceCounters};

use crate::link::LinkCounters;
use crate::stages::StageTimes;

/// Totals since the host was made, and what there is now.
#[derive(Clone, Debug, Default)]
pub struct HostCounters {
    /// From the device.
    pub source: SourceCounters,
    /// To the device.
    pub sink: SinkCounters,
    /// What the engine did.
    pub engine: Counters,
    /// What is not TCP.
    pub link: LinkCounters,
    /// Deliveries given to connections.
    pub deliveries: u64,
    /// Those that went to a backlog, because an application had the connection.
    pub put_off: u64,
    /// Those that found the backlog full; their senders send again.
    pub backlog_drops: u64,
    /// Large sends that the device refused, and that left as single segments.
    pub refused_sends: u64,
    /// How often text was copied because the device wanted its frames back.
    pub copied_out: u64,
    /// Segments for which there was no connection and that opened none.
    pub strangers: u64,
    /// Resets sent to strangers.
    pub resets: u64,
    /// SYNs answered by a cookie, because too many connections were opening.
    pub cookies_sent: u64,
    /// Connections opened by one.
    pub cookies_taken: u64,
    /// SYNs dropped because a listener's backlog, or the host, was full.
    pub syns_dropped: u64,
    /// Connections in TIME-WAIT that were given up before their time, because there were too many.
    pub time_waits_given_up: u64,
    /// Connections that no application had any more, reset because there were too many.
    pub orphans_reset: u64,
    /// Where the time of its turns went, of those that were timed.
    pub stages: StageTimes,
    /// Connections that exist now, those in TIME-WAIT left out.
    pub connections: usize,
    /// Those of them that no application has any more.
    pub orphans: usize,
    /// What is left of [`HostConfig::memory_bytes`](crate::HostConfig::memory_bytes) now.
    pub memory_left_bytes: u64,
    /// Connections in TIME-WAIT now.
    pub time_waits: usize,
    /// Timers that run now.
    pub timers: usize,
}
