//! Counters of a host with its own TCP, as data that can be serialized.

use std::collections::BTreeMap;

use rxo_console::numbers::{ratio, rounded};
use rxo_driver::heap::Memory;
use rxo_host::HostCounters;
use rxo_host::link::LinkCounters;
use serde::Serialize;

use super::{Outgoing, PureAcks, acks, outgoing, reasons};

/// All counters of a host since its start, and its present state.
#[derive(Clone, Debug, Serialize)]
pub struct HostFigures {
    /// Frames from the device, and losses before the host.
    pub nic_in: BTreeMap<&'static str, u64>,
    /// Frames to the device.
    pub nic_out: Outgoing,
    /// Deliveries from the engine to connections.
    pub deliveries: u64,
    /// Frames per delivery.
    pub frames_per_delivery: f64,
    /// Pure ACKs among the frames from the device.
    pub acks: PureAcks,
    /// The present connections and memory. `resident_bytes` is the resident memory of this process;
    /// `pooled_bytes` is the part of it that was freed and is kept for later allocations.
    pub now: BTreeMap<&'static str, u64>,
    /// Events of segments and connections, by name.
    pub tcp: BTreeMap<&'static str, u64>,
    /// What is not TCP.
    pub link: BTreeMap<String, u64>,
    /// Frames not coalesced, by reason; reasons that did not occur are left out.
    pub bypass: BTreeMap<&'static str, u64>,
    /// Deliveries of held packets, by reason; reasons that did not occur are left out.
    pub flush: BTreeMap<&'static str, u64>,
}

impl HostFigures {
    /// Creates the figures of `of`. Allocates.
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

/// All but what is about groups, with the refusals of the gate.
fn of_link(of: &LinkCounters) -> BTreeMap<String, u64> {
    let is_shown =
        |name: &str| !matches!(name, "group_queries" | "older_queriers" | "group_reports");
    let link = of.named().filter(|(name, _)| is_shown(name));
    let refused = of.refused.named().map(|(name, count)| (format!("refused_{name}"), count));
    link.map(|(name, count)| (name.to_owned(), count)).chain(refused).collect()
}

#[cfg(test)]
mod tests {
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
}
