//! The load: the number of cores that are busy with receiving the traffic at its mean rate.

use crate::projection::Costs;
use crate::report::{Outcome, Receiver, Traffic};

/// The mean rate of the traffic, and the cost of receiving one of its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    packet_bytes: f64,
    packets_per_ns: f64,
    costs: Costs,
}

/// The number of cores that are busy with receiving; 0.5 is half a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cores {
    pub(super) without: f64,
    pub(super) with: f64,
}

impl Cores {
    /// Returns both numbers of cores increased by `cores`, to add a cost that does not depend on coalescing.
    pub(super) const fn plus(self, cores: f64) -> Self {
        Self { without: self.without + cores, with: self.with + cores }
    }

    pub(super) const fn saved(self) -> f64 {
        self.without - self.with
    }
}

impl Load {
    /// Returns the load of `traffic` during the time in which packets arrive; `None` if no time passes between
    /// the first packet and the last, because the traffic has no rate then.
    pub(super) fn of(traffic: &Traffic, costs: Costs) -> Option<Self> {
        let Traffic { packets, bytes, active_ns, .. } = *traffic;
        (packets > 0 && active_ns > 0).then(|| Self {
            packet_bytes: bytes as f64 / packets as f64,
            packets_per_ns: packets as f64 / active_ns as f64,
            costs,
        })
    }

    /// Returns the number of busy cores without coalescing and with the policy of `outcome`.
    pub(super) fn cores(&self, outcome: &Outcome) -> Cores {
        self.cores_at(packets_per_delivery(outcome))
    }

    /// Returns the number of busy cores without coalescing and with `k` packets per delivery.
    pub(super) fn cores_at(&self, k: f64) -> Cores {
        let (without_ns, with_ns) = self.costs.of_packet(self.packet_bytes, k);
        Cores { without: without_ns * self.packets_per_ns, with: with_ns * self.packets_per_ns }
    }
}

/// Packets of a capture, and their deliveries under one poll rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) deliveries: u64,
}

impl Delivered {
    /// Returns the share of the packets that never reach the host's stack, from 0 to 1.
    pub(super) fn fewer_packets(&self) -> f64 {
        self.packets.saturating_sub(self.deliveries) as f64 / self.packets.max(1) as f64
    }

    /// Returns the number of packets per delivery; 1 if there are no packets.
    pub(super) fn packets_per_delivery(&self) -> f64 {
        self.packets.max(1) as f64 / self.deliveries.max(1) as f64
    }

    /// Returns the number of cores that are busy with receiving the packets during `traffic`; `None` if no time
    /// passes.
    pub(super) fn cores(&self, traffic: &Traffic, costs: Costs) -> Option<Cores> {
        let Self { packets, bytes, .. } = *self;
        let own = Traffic { packets, bytes, active_ns: traffic.active_ns, ..Traffic::default() };
        Load::of(&own, costs).map(|load| load.cores_at(self.packets_per_delivery()))
    }
}

/// Returns the effect of coalescing on an address that receives the packets `received` during `traffic`. The fields
/// `address` and `is_host` keep their defaults.
pub(crate) fn receiver(traffic: &Traffic, costs: Costs, received: Delivered) -> Receiver {
    let cores = received.cores(traffic, costs);
    let Delivered { packets, bytes, deliveries } = received;
    Receiver {
        packets,
        bytes,
        deliveries,
        fewer_packets: received.fewer_packets(),
        cores_without: cores.map(|cores| cores.without),
        cores_with: cores.map(|cores| cores.with),
        ..Receiver::default()
    }
}

/// Returns the number of packets per delivery; 1 if there are no packets.
pub(super) fn packets_per_delivery(outcome: &Outcome) -> f64 {
    outcome.packets.max(1) as f64 / outcome.deliveries.max(1) as f64
}

/// Returns the share of packets that never reach the host's stack, from 0 to 1.
pub(super) fn fewer_packets(outcome: &Outcome) -> f64 {
    outcome.eliminated as f64 / outcome.packets.max(1) as f64
}
