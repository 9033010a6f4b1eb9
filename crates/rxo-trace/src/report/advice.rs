//! Which settings are enough.

use serde::Serialize;

/// The smallest settings that come close to the best of those tried.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Advice {
    /// How much of the best counts as close, 0.95.
    pub wanted_share: f64,
    /// What the settings were tried with: the chosen policy and rule for polls, as text.
    pub basis: String,
    /// What other rules for polls would give, the shortest wait first; empty in a sweep.
    pub polls: Vec<TriedPoll>,
    /// The shortest wait that comes within 1 % of a core of the best, where the chosen one does not.
    pub better_poll: Option<String>,
    /// One for every setting tried by itself, or one for each axis of the user's sweep.
    pub choices: Vec<Choice>,
    /// What all choices together keep of the best on their settings. Exact for a sweep of the user's; where each
    /// setting was tried by itself, their product.
    pub expected_share: f64,
    /// Whether `expected_share` was seen, or is an estimate.
    pub is_exact: bool,
    /// What that means for a Linux host; `None` when the rule for polls is no time, or coalescing is
    /// not worth it.
    pub linux: Option<LinuxAdvice>,
}

/// What one rule for polls would give, the rest as chosen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TriedPoll {
    /// The rule, as the user would type it.
    pub poll: String,
    /// The share of packets that the host's stack is spared, from 0 to 1.
    pub fewer_packets: f64,
    /// Packets per delivery.
    pub packets_per_delivery: f64,
    /// Cores busy with receiving at the capture's mean rate; `None` without a rate.
    pub cores_with: Option<f64>,
    /// 99 % of the first segments of aggregates wait at most so long, in nanoseconds.
    pub hold_p99_ns: u64,
    /// Whether it is the one that the report is about.
    pub is_chosen: bool,
    /// Whether no host would see as much.
    pub is_at_most: bool,
}

/// One setting's smallest value that is enough.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Choice {
    /// The setting, as the user would type it; `poll` is the rule for polls.
    pub key: String,
    /// The value.
    pub value: String,
    /// Packets eliminated of 10,000 with it.
    pub eliminated_per_10_000: f64,
    /// That, as a share of the best on this setting.
    pub share_of_best: f64,
    /// All values tried, the smallest first.
    pub tried: Vec<Tried>,
}

/// One value that was tried.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tried {
    /// The value, as the user would type it.
    pub value: String,
    /// Packets eliminated of 10,000 with it, the best where other settings varied too.
    pub eliminated_per_10_000: f64,
}

/// Interrupt and polling settings of a Linux host.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinuxAdvice {
    /// The share of packets that the host's stack is spared with it, from 0 to 1.
    pub fewer_packets: f64,
    /// `ethtool -C IF rx-usecs`: microseconds.
    pub rx_usecs: u64,
    /// `ethtool -C IF rx-frames`.
    pub rx_frames: u64,
    /// `/sys/class/net/IF/gro_flush_timeout`: nanoseconds.
    pub gro_flush_timeout_ns: u64,
    /// `/sys/class/net/IF/napi_defer_hard_irqs`: polls without packets.
    pub napi_defer_hard_irqs: u64,
    /// How each was derived from the capture, one sentence each.
    pub derivation: Vec<String>,
    /// The commands, with `IF` for the interface.
    pub commands: Vec<String>,
}
