//! Advice: the smallest settings that are enough.

use serde::Serialize;

/// Advice: the smallest settings that come close to the best of those tried.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Advice {
    /// The share of the best result that counts as close, 0.95.
    pub wanted_share: f64,
    /// The policy and poll rule with which the settings were tried, as text.
    pub basis: String,
    /// The results of other poll rules, shortest wait first; empty if the user made a sweep.
    pub polls: Vec<TriedPoll>,
    /// The poll rule with the shortest wait whose savings are within 1 % of a core of the best poll rule's;
    /// `None` if the savings of the chosen poll rule already are.
    pub better_poll: Option<String>,
    /// The choice for every setting that was tried, or for each axis of the user's sweep.
    pub choices: Vec<Choice>,
    /// The share of the best result that all choices together keep. Exact for the user's sweep; the product of the
    /// shares if each setting was tried by itself.
    pub expected_share: f64,
    /// `true` if `expected_share` was measured rather than estimated.
    pub is_exact: bool,
    /// The settings of a Linux host; `None` if the poll rule is not a time, or coalescing is not worth it.
    pub linux: Option<LinuxAdvice>,
}

impl Advice {
    /// Returns `true` if any of the chosen values eliminates packets.
    pub(crate) fn gains(&self) -> bool {
        self.choices.iter().any(|choice| choice.eliminated_per_10_000 > 0.0)
    }
}

/// The result of one poll rule, with all other settings as chosen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TriedPoll {
    /// The poll rule, as the user would type it.
    pub poll: String,
    /// The share of the packets that the decision is for that never reach the host's stack under this rule, from 0 to 1.
    pub fewer_packets: f64,
    /// The number of these packets per delivery under this rule.
    pub packets_per_delivery: f64,
    /// The number of cores that are busy with receiving these packets at the capture's mean rate; `None` if the capture
    /// has no rate.
    pub cores_with: Option<f64>,
    /// The time that 99 % of the first segments of aggregates wait at most, in nanoseconds.
    pub hold_p99_ns: u64,
    /// `true` for the poll rule of the report.
    pub is_chosen: bool,
    /// `true` if the poll rule and GRO are those of a Linux host today, which does not wait for packets.
    pub is_today: bool,
    /// `true` if no host polls by this rule, because it waits for its packets without limit.
    pub is_hypothetical: bool,
}

/// The advice for one setting: the smallest value that is enough.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Choice {
    /// The name of the setting, as the user would type it; `poll` is the poll rule.
    pub key: String,
    /// The smallest value that is enough.
    pub value: String,
    /// The number of packets that this value eliminates per 10,000.
    pub eliminated_per_10_000: f64,
    /// The share of the packets eliminated by the setting's best value that this value eliminates too, from 0
    /// to 1.
    pub share_of_best: f64,
    /// All values of the setting that were tried, smallest first.
    pub tried: Vec<Tried>,
}

/// One value of a setting that was tried.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tried {
    /// The value that was tried, as the user would type it.
    pub value: String,
    /// The number of packets that this value eliminates per 10,000; if other settings varied too, the number
    /// with their best values.
    pub eliminated_per_10_000: f64,
}

/// Settings of a Linux host for interrupts and polling.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinuxAdvice {
    /// The share of the packets that the decision is for that never reach the host's stack with the advised settings,
    /// from 0 to 1.
    pub fewer_packets: f64,
    /// The value for `ethtool -C IF rx-usecs`, in microseconds.
    pub rx_usecs: u64,
    /// The value for `ethtool -C IF rx-frames`, in packets.
    pub rx_frames: u64,
    /// The value for `/sys/class/net/IF/gro_flush_timeout`, in nanoseconds.
    pub gro_flush_timeout_ns: u64,
    /// The value for `/sys/class/net/IF/napi_defer_hard_irqs`, a number of empty polls.
    pub napi_defer_hard_irqs: u64,
    /// The derivation of each value from the capture, as one sentence each.
    pub derivation: Vec<String>,
    /// The commands that set the advised values, with `IF` for the interface.
    pub commands: Vec<String>,
}
