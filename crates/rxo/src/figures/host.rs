//! Counters of a host with its own TCP, and of each of its workers, as data that can be serialized.

use std::collections::BTreeMap;

use rxo_console::numbers::{ratio, rounded};
use rxo_driver::heap::Memory;
use rxo_host::HostCounters;
use rxo_host::link::LinkCounters;
use serde::Serialize;

use super::{Outgoing, PureAcks, acks, outgoing, reasons};
use crate::live::host::HostReading;

/// All counters of a host since its start, and its current state.
#[derive(Clone, Debug, Serialize)]
pub struct HostFigures {
    /// Counters of the frames from the device, and of losses before the frames reached the host.
    pub nic_in: BTreeMap<&'static str, u64>,
    /// Counters of the packets sent to the device.
    pub nic_out: Outgoing,
    /// Number of deliveries from the engine to connections.
    pub deliveries: u64,
    /// Average number of frames per delivery.
    pub frames_per_delivery: f64,
    /// Counters of pure ACKs among the frames from the device.
    pub acks: PureAcks,
    /// The current numbers of connections and bytes of memory. `resident_bytes` is the resident memory of this
    /// process; `pooled_bytes` is the part of this memory that was freed and is kept for later allocations.
    pub now: BTreeMap<&'static str, u64>,
    /// Counters of the events of TCP segments and connections, by name.
    pub tcp: BTreeMap<&'static str, u64>,
    /// Counters of the protocols below TCP: ARP, neighbour discovery, ICMP and others.
    pub link: BTreeMap<String, u64>,
    /// Frames that were not coalesced, by reason; reasons that did not occur are left out.
    pub bypass: BTreeMap<&'static str, u64>,
    /// Deliveries of held packets, by reason; reasons that did not occur are left out.
    pub flush: BTreeMap<&'static str, u64>,
    /// The figures of each worker; empty if the host has only one worker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<HostWorkerFigures>,
}

/// The figures of one worker of a host.
#[derive(Clone, Debug, Serialize)]
pub struct HostWorkerFigures {
    /// The worker's number, from 1 on.
    pub name: String,
    /// Number of packets that the worker received from its queue of the nic.
    pub packets: u64,
    /// Number of packets that were lost because the worker's queue of the nic was full.
    pub ring_drops: u64,
    /// Number of deliveries of the worker's engine to its connections.
    pub deliveries: u64,
    /// Number of packets that the worker sent; a GSO frame counts as its segments.
    pub sent: u64,
    /// Number of frames that the worker could not send.
    pub dropped: u64,
    /// Deliveries for connections that belong to other workers. More than a few mean that the device does not steer
    /// the frames of a flow to the queue of the flow's worker.
    pub misplaced: u64,
    /// The current number of the worker's connections.
    pub connections: u64,
    /// The processor time of the worker's thread in seconds.
    pub cpu_s: f64,
}

impl HostWorkerFigures {
    /// Creates the figures of each worker; empty if the host has only one worker.
    #[must_use]
    pub fn all(of: &[HostReading]) -> Vec<Self> {
        let workers = of.iter().enumerate().filter(|_| of.len() > 1);
        workers.map(|(n, worker)| Self::new(n + 1, worker)).collect()
    }

    fn new(number: usize, HostReading { counters, cpu }: &HostReading) -> Self {
        Self {
            name: number.to_string(),
            packets: counters.source.frames,
            ring_drops: counters.source.ring_drops,
            deliveries: counters.deliveries,
            sent: counters.sink.frames,
            dropped: counters.sink.dropped_frames,
            misplaced: counters.tcp.misplaced,
            connections: counters.connections as u64,
            cpu_s: rounded(cpu.as_secs_f64(), 3),
        }
    }
}

impl HostFigures {
    /// Creates the figures of a host with `workers`. Allocates.
    #[must_use]
    pub fn of_workers(workers: &[HostReading]) -> Self {
        let each = HostWorkerFigures::all(workers);
        Self { workers: each, ..Self::new(&HostReading::sum(workers)) }
    }

    /// Creates the figures of a host from its counters. Allocates.
    #[must_use]
    pub fn new(of: &HostCounters) -> Self {
        let HostCounters { source, sink, engine, link, deliveries, .. } = of;
        let [bypass, flush] = reasons(engine);
        Self {
            nic_in: BTreeMap::from([
                ("packets", source.frames),
                ("bytes", source.bytes),
                ("ring_drops", source.ring_drops),
                ("truncated", source.truncated),
                ("invalid", source.invalid),
            ]),
            nic_out: outgoing(sink),
            deliveries: *deliveries,
            frames_per_delivery: rounded(ratio(source.frames as f64, *deliveries as f64), 2),
            acks: acks(engine),
            now: now(of),
            tcp: of.tcp.named().collect(),
            link: of_link(link),
            bypass,
            flush,
            workers: Vec::new(),
        }
    }
}

fn now(of: &HostCounters) -> BTreeMap<&'static str, u64> {
    let Memory { resident_bytes, pooled_bytes } = Memory::now();
    BTreeMap::from([
        ("connections", of.connections as u64),
        ("orphans", of.orphans as u64),
        ("time_waits", of.time_waits as u64),
        ("timers", of.timers as u64),
        ("waiting_for_device", of.waiting_for_device as u64),
        ("memory_left_bytes", of.memory_left_bytes),
        ("resident_bytes", resident_bytes),
        ("pooled_bytes", pooled_bytes),
    ])
}

/// Returns the counters of the link layer (ARP, neighbour discovery, ICMP), and of the frames that were refused
/// because they are not for this host. Leaves out the counters of multicast groups.
fn of_link(of: &LinkCounters) -> BTreeMap<String, u64> {
    let is_shown =
        |name: &str| !matches!(name, "group_queries" | "older_queriers" | "group_reports");
    let link = of.named().filter(|(name, _)| is_shown(name));
    let refused = of.refused.named().map(|(name, count)| (format!("refused_{name}"), count));
    link.map(|(name, count)| (name.to_owned(), count)).chain(refused).collect()
}

#[cfg(test)]
mod tests {
    use rxo_host::FastModules;

    use super::*;

    #[test]
    fn what_a_host_counts_is_found_by_name() {
        let mut counters = HostCounters { deliveries: 10, connections: 3, ..Default::default() };
        (counters.source.frames, counters.link.refused.bad_checksum) = (25, 7);
        counters.tcp.resets = 2;
        let figures = HostFigures::new(&counters);
        assert!((figures.frames_per_delivery - 2.5).abs() < 1e-9);
        assert_eq!((figures.nic_in["packets"], figures.now["connections"]), (25, 3));
        assert_eq!((figures.tcp["resets"], figures.link["refused_bad_checksum"]), (2, 7));
        assert!(figures.bypass.is_empty() && figures.now["resident_bytes"] > 1 << 20);
    }

    #[test]
    fn several_workers_are_shown_beside_their_sum() {
        let worker = |deliveries| {
            let counters = HostCounters { deliveries, connections: 2, ..Default::default() };
            HostReading { counters, cpu: std::time::Duration::from_millis(1_500) }
        };
        let figures = HostFigures::of_workers(&[worker(10), worker(32)]);
        assert_eq!((figures.deliveries, figures.now["connections"]), (42, 4));
        let [first, second] = &figures.workers[..] else { panic!("{figures:?}") };
        assert_eq!((first.deliveries, &*second.name, second.cpu_s), (10, "2", 1.5));
        let mut fast = worker(0);
        fast.counters.fast.modules = FastModules::PURE_ACK;
        assert_eq!(HostReading::sum(&[fast]).fast.modules, FastModules::PURE_ACK);
        assert!(HostFigures::of_workers(&[worker(10)]).workers.is_empty());
    }
}
