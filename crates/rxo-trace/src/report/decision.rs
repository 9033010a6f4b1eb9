//! The decision: headline figures on the benefit of coalescing.

use serde::Serialize;

use super::Receiver;
use crate::projection::Costs;

/// The decision whether coalescing is worth it, for the chosen policy and poll rule.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Decision {
    /// The decision and its reason, in a sentence or two.
    pub sentence: String,
    /// `true` if coalescing saves 1 % of a core or more at the capture's mean rate; `None` if the capture has no rate or
    /// cannot answer, if the figures are no prediction, or if the answer depends on the receiving host.
    pub is_worth_it: Option<bool>,
    /// The number of packets that the decision is for: those that one host receives, if the capture shows
    /// this host.
    pub packets: u64,
    /// The number of deliveries to the host's stack for the packets that the decision is for.
    pub deliveries: u64,
    /// The share of the packets that never reach the host's stack, from 0 to 1.
    pub fewer_packets: f64,
    /// `true` if the figures are no prediction: polls of a number of packets wait longer than any host would.
    pub is_hypothetical: bool,
    /// The number of cores that are busy with receiving at the capture's mean rate without coalescing; 0.5 is half a
    /// core. `None` if no time passes between the first packet and the last.
    pub cores_without: Option<f64>,
    /// The number of cores that are busy with receiving at the capture's mean rate with coalescing; `None` if
    /// `cores_without` is.
    pub cores_with: Option<f64>,
    /// The time that 99 % of the first segments of aggregates wait at most, in nanoseconds.
    pub hold_p99_ns: u64,
    /// The poll rule of the decision, as the user would type it.
    pub poll: String,
    /// The costs of receiving that were assumed or given.
    pub costs: Costs,
    /// The origin of the costs, as reports name it.
    pub costs_from: String,
    /// The host on which the capture was taken, then the addresses that receive a tenth of the packets or
    /// more. Empty if the records state which packets the host sent, because the decision is then for all
    /// other packets.
    pub receivers: Vec<Receiver>,
}
