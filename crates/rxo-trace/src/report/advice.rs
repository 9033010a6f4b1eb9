//! Advice: the smallest settings that are enough.

use serde::Serialize;

/// The smallest settings that come close to the best of those tried.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Advice {
    /// The share of the best that counts as close, 0.95.
    pub wanted_share: f64,
    /// The policy and poll rule with which the settings were tried, as text.
    pub basis: String,
    /// The results of other poll rules, shortest wait first; empty in a sweep.
    pub polls: Vec<TriedPoll>,
    /// The shortest wait that comes within 1 % of a core of the best; `None` if the chosen poll rule does.
    pub better_poll: Option<String>,
    /// One for every setting that was tried, or for each axis of the user's sweep.
    pub choices: Vec<Choice>,
    /// The share of the best that all choices together keep. Exact for the user's sweep; the
    /// product of the shares if each setting was tried by itself.
    pub expected_share: f64,
    /// True if `expected_share` was measured rather than estimated.
    pub is_exact: bool,
    /// The settings of a Linux host; `None` if the poll rule is not a time, or coalescing is not
    /// worth it.
    pub linux: Option<LinuxAdvice>,
}

/// The result of one poll rule, with everything else as chosen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TriedPoll {
    /// The rule, as the user would type it.
    pub poll: String,
    /// The share of packets that never reach the host's stack under this rule, from 0 to 1.
    pub fewer_packets: f64,
    /// Packets per delivery.
    pub packets_per_delivery: f64,
    /// Cores busy with receiving at the capture's mean rate; `None` without a rate.
    pub cores_with: Option<f64>,
    /// 99 % of the first segments of aggregates wait at most this long, in nanoseconds.
    pub hold_p99_ns: u64,
    /// True for the rule of the report.
    pub is_chosen: bool,
    /// True if the result is an upper bound that no host reaches.
    pub is_at_most: bool,
}

/// The smallest value of one setting that is enough.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Choice {
    /// The setting, as the user would type it; `poll` is the poll rule.
    pub key: String,
    /// The value.
    pub value: String,
    /// Packets eliminated per 10,000 with this value.
    pub eliminated_per_10_000: f64,
    /// The ratio of this number to that of the best value of this setting, from 0 to 1.
    pub share_of_best: f64,
    /// All values tried, smallest first.
    pub tried: Vec<Tried>,
}

/// One value that was tried.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tried {
    /// The value, as the user would type it.
    pub value: String,
    /// Packets eliminated per 10,000 with this value; if other settings varied too, with the best of them.
    pub eliminated_per_10_000: f64,
}

/// Interrupt and polling settings of a Linux host.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinuxAdvice {
    /// The share of packets that never reach the host's stack with these settings, from 0 to 1.
    pub fewer_packets: f64,
    /// `ethtool -C IF rx-usecs`, in microseconds.
    pub rx_usecs: u64,
    /// `ethtool -C IF rx-frames`.
    pub rx_frames: u64,
    /// `/sys/class/net/IF/gro_flush_timeout`, in nanoseconds.
    pub gro_flush_timeout_ns: u64,
    /// `/sys/class/net/IF/napi_defer_hard_irqs`: a number of empty polls.
    pub napi_defer_hard_irqs: u64,
    /// The derivation of each value from the capture, one sentence each.
    pub derivation: Vec<String>,
    /// The commands, with `IF` for the interface.
    pub commands: Vec<String>,
}
