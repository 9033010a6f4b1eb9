//! The decision: headline figures on the benefit of coalescing.

use serde::Serialize;

use crate::projection::Costs;

/// The decision whether coalescing is worth it, for the chosen policy and poll rule.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Decision {
    /// The decision and its reason, in a sentence or two.
    pub sentence: String,
    /// `true` if coalescing saves 1 % of a core or more at the capture's mean rate; `None` if the capture has no rate,
    /// or the figures are only an upper bound.
    pub is_worth_it: Option<bool>,
    /// The share of packets that never reach the host's stack, from 0 to 1.
    pub fewer_packets: f64,
    /// `true` if `fewer_packets` is an upper bound: polls of a number of packets wait longer than any host would.
    pub is_at_most: bool,
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
}
