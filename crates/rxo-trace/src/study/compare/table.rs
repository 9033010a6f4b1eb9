//! The result of a comparison, as data.

use rxo_console::numbers::ratio;
use serde::Serialize;

use super::counts::DeliveryCounts;
use super::{NamedPolicy, PolicyComparison, Settings};
use crate::report::Distribution;

/// The result of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonTable {
    /// The names of the captures, in order.
    pub sources: Vec<String>,
    /// The poll rule, as the user types it.
    pub poll: String,
    /// The number of packets.
    pub packets: u64,
    /// The number of bytes on the wire.
    pub bytes: u64,
    /// The number of packets that reached no engine, because the packets are not IP, or the maximum number of
    /// interfaces was reached.
    pub unserved_packets: u64,
    /// The rate for which the cores are predicted, in 10^9 bits per second.
    pub rate_gbit_per_s: f64,
    /// The origin of the costs from which the cores are predicted.
    pub costs_from: String,
    /// The results of the policies, one row for each.
    pub policies: Vec<PolicyOutcome>,
    /// The reason why the table is incomplete; `None` if it is complete.
    pub partial: Option<String>,
}

/// The result of one policy.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyOutcome {
    /// The name of the policy.
    pub policy: String,
    /// The number of deliveries to the host's stack.
    pub deliveries: u64,
    /// The number of packets eliminated: packets minus deliveries.
    pub eliminated: u64,
    /// The number of packets eliminated per 10,000 packets.
    pub eliminated_per_10_000: f64,
    /// The mean number of packets per delivery.
    pub packets_per_delivery: f64,
    /// The time from arrival to delivery of each aggregate or single candidate, in nanoseconds.
    pub hold_ns: Distribution,
    /// The number of payload bytes in all aggregates. A sink without scatter-gather must copy these bytes.
    pub copied_bytes: u64,
    /// The number of segments with payload that were delivered after later data of their flow: out of order, or
    /// retransmitted.
    pub late_segments: u64,
    /// The number of cores that are busy with receiving at the rate of the table.
    pub cores: f64,
    /// All settings of the policy, as names and values. A policy that is written in code, such as Juggler, may ignore
    /// some of them.
    pub settings: Vec<(String, String)>,
}

impl ComparisonTable {
    pub(super) fn of(comparison: &PolicyComparison, partial: Option<String>) -> Self {
        let PolicyComparison { settings, packets, bytes, unserved, policies, counts, .. } =
            comparison;
        let of = (*packets, *bytes, *unserved);
        let rows = policies.iter().zip(counts);
        Self {
            sources: comparison.sources.clone(),
            poll: settings.poll.to_string(),
            packets: *packets,
            bytes: *bytes,
            unserved_packets: *unserved,
            rate_gbit_per_s: settings.rate_gbit_per_s,
            costs_from: settings.costs_from.clone(),
            policies: rows
                .map(|(it, counts)| PolicyOutcome::of(it, counts, of, settings))
                .collect(),
            partial: partial.or_else(|| comparison.damage.clone()),
        }
    }
}

impl PolicyOutcome {
    fn of(
        policy: &NamedPolicy,
        counts: &DeliveryCounts,
        (packets, wire_bytes, unserved): (u64, u64, u64),
        settings: &Settings,
    ) -> Self {
        // Packets that reached no engine pass unchanged.
        let deliveries = counts.counters.deliveries + unserved;
        let eliminated = packets.saturating_sub(deliveries);
        let per_delivery = ratio(packets as f64, deliveries as f64);
        let packet_bytes = ratio(wire_bytes as f64, packets as f64);
        let (without_ns, with_ns) = settings.costs.of_packet(packet_bytes, per_delivery.max(1.0));
        let packet_ns = if policy.policy().coalesce { with_ns } else { without_ns };
        Self {
            policy: policy.name().to_owned(),
            deliveries,
            eliminated,
            eliminated_per_10_000: 10_000.0 * ratio(eliminated as f64, packets as f64),
            packets_per_delivery: per_delivery,
            hold_ns: Distribution::from(&counts.counters.hold_ns),
            copied_bytes: counts.copied_bytes,
            late_segments: counts.late_segments,
            // Bits per nanosecond equal 10^9 bits per second.
            cores: ratio(settings.rate_gbit_per_s * packet_ns, 8.0 * packet_bytes),
            settings: policy
                .policy()
                .settings()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }
}
