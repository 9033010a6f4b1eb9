//! What coalescing would be worth, in the figures that are passed on.

use serde::Serialize;

use crate::projection::Costs;

/// The answer: what a host would see under the chosen policy and rule for polls.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Decision {
    /// Whether it is worth it, and why, in a sentence or two.
    pub sentence: String,
    /// Whether it saves 1 % of a core or more at the capture's mean rate; `None` when the capture
    /// has no rate, or the figures are only a most.
    pub is_worth_it: Option<bool>,
    /// The share of packets that the host's stack is spared, from 0 to 1.
    pub fewer_packets: f64,
    /// Whether that is a most: polls of a number of packets wait for them longer than a host would.
    pub is_at_most: bool,
    /// Cores busy with receiving at the capture's mean rate without coalescing: 0.5 is half of one.
    /// `None` when no time passes between the first packet and the last.
    pub cores_without: Option<f64>,
    /// The same with coalescing.
    pub cores_with: Option<f64>,
    /// 99 % of the first segments of aggregates wait at most so long, in nanoseconds.
    pub hold_p99_ns: u64,
    /// When the host polls, as the user would type it.
    pub poll: String,
    /// What receiving was taken to cost.
    pub costs: Costs,
    /// Where these costs come from, for readers.
    pub costs_from: String,
}
