//! How a worker is to work.

use std::time::Duration;

use rxo_coalesce::{Config, Policy};

use super::{Overload, Pause};

/// What a worker is made from.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The engine's. Its link kind and batch size are set by the worker.
    pub engine: Config,
    /// When to let frames gather before the next batch.
    pub pause: Pause,
    /// Most frames taken from the nic in one batch, 1 to 32,768. An aggregate of a work-conserving
    /// policy cannot be larger than a batch, and a larger batch leaves more of it to be shared
    /// among many flows; it must stay well below the ring's slots, which are lent out meanwhile.
    pub budget_frames: usize,
    /// Most frames taken from the host in one batch. They may be super-packets of 64 KiB, and
    /// while they go out the nic waits.
    pub host_budget_frames: usize,
    /// When a queue before the worker is too long, and frames are dropped; `None`: never. Then the ring
    /// alone limits it.
    pub overload: Option<Overload>,
    /// Before an ACK of the host that covers many segments, insert those that were due: one for every
    /// so many full-sized segments, 1 to 64. `None`, the default, inserts nothing. For hosts whose
    /// peers count ACKs; it needs both directions.
    pub ack_split: Option<u16>,
    /// What is carried.
    pub directions: Directions,
    /// How often the observer is called, at least 1 ms; `None` for never.
    pub report_every: Option<Duration>,
}

impl WorkerConfig {
    /// Both directions, 256 frames a batch from the nic and 64 from the host, the usual pause, RFC
    /// 8289's target and interval, no ACKs split, no reports.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            engine: Config::new(policy),
            pause: Pause::default(),
            budget_frames: 256,
            host_budget_frames: 64,
            overload: Some(Overload::default()),
            ack_split: None,
            directions: Directions::Both,
            report_every: None,
        }
    }
}

/// Which directions a worker serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directions {
    /// Both.
    #[default]
    Both,
    /// Only what goes to the host; another worker has the other.
    ToHost,
    /// Only what the host sends.
    ToNic,
}

impl Directions {
    pub(super) const fn to_host(self) -> bool {
        matches!(self, Self::Both | Self::ToHost)
    }

    pub(super) const fn to_nic(self) -> bool {
        matches!(self, Self::Both | Self::ToNic)
    }
}
