//! Figures of each worker, if several share the devices.

use rxo_console::numbers::{ratio, rounded};
use serde::Serialize;

use super::{Readings, packets_per_aggregate};
use crate::Reading;

/// The figures of one worker.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerFigures {
    /// The worker's number, counted from 1.
    pub name: String,
    /// Number of packets that the worker received from its queue of the nic.
    pub packets: u64,
    /// Number of packets lost because the worker's queue of the nic was full.
    pub ring_drops: u64,
    /// Number of frames that the worker dropped because more arrived than it could process.
    pub overload: u64,
    /// Number of packets that the worker sent to the host; an aggregate counts as one. With guests: the packets that it
    /// passed on to guests, which are coalesced later.
    pub deliveries: u64,
    /// Average number of coalescable segments per delivery of the worker; 0 with guests.
    pub packets_per_aggregate: f64,
    /// Number of packets that the worker received from the host, or from guests.
    pub sent: u64,
    /// Number of packets that the worker could not send, to the host or to the nic.
    pub dropped: u64,
    /// The processor time of the worker's thread in seconds, user and system together.
    pub cpu_s: f64,
    /// The worker's share of one core, in percent.
    pub cpu_percent: f64,
}

impl WorkerFigures {
    /// Creates the figures of all workers.
    pub(super) fn all(of: &Readings) -> Vec<Self> {
        of.workers.iter().enumerate().map(|(n, worker)| Self::new(n + 1, worker)).collect()
    }

    fn new(number: usize, of: &Reading) -> Self {
        let (cpu_s, time_s) = (of.cpu.as_secs_f64(), of.elapsed.as_secs_f64());
        Self {
            name: number.to_string(),
            packets: of.nic_in.frames,
            ring_drops: of.nic_in.ring_drops,
            overload: of.overload,
            deliveries: of.host_out.packets,
            packets_per_aggregate: packets_per_aggregate(&of.engine),
            sent: of.host_in.frames,
            dropped: of.host_out.dropped_frames + of.nic_out.dropped_frames,
            cpu_s: rounded(cpu_s, 3),
            cpu_percent: rounded(100.0 * ratio(cpu_s, time_s), 1),
        }
    }
}
