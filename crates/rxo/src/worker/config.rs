//! The configuration of a worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rxo_coalesce::{Config, Policy};

use super::{Coalesce, Overload, Pause, Question};
use crate::desk::Desk;
use crate::random_seed;

/// The configuration of a worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The configuration of the engine. The worker sets its link kind and batch size.
    pub engine: Config,
    /// When to let frames gather before the next batch.
    pub pause: Pause,
    /// The most frames in a batch from the nic, 1 to 32,768. An aggregate of a work-conserving policy
    /// cannot be larger than a batch, and many flows share one. It must be well below the number of
    /// slots in the ring, which are lent out meanwhile.
    pub budget_frames: usize,
    /// The most frames in a batch from the host. They may be GSO frames of 64 KiB, and the nic is not
    /// read while they are sent.
    pub host_budget_frames: usize,
    /// When the queue before the worker counts as too long, so that frames are dropped. `None` drops
    /// none; then only the ring limits the queue.
    pub overload: Option<Overload>,
    /// Inserts ACKs before an ACK of the host that covers many segments: one for every so many
    /// full-sized segments, 1 to 64. `None`, the default, inserts nothing. For peers that count ACKs.
    /// It needs both directions.
    pub ack_split: Option<u16>,
    /// Which directions the worker serves.
    pub directions: Directions,
    /// Time between two reports to the observer, at least 1 ms; `None` for none.
    pub report_every: Option<Duration>,
    /// The longest time between two calls of the observer, at least 1 ms: it is also called between reports, so that
    /// it can ask the sinks for notices. `None` calls it for reports only.
    pub look_every: Option<Duration>,
    /// When frames go through the engine. [`Coalesce::Auto`] decides once in [`WorkerConfig::look_every`], so it needs that.
    pub coalesce: Coalesce,
    /// Where the worker is asked while it runs. `None`: it is not.
    pub desk: Option<Desk<Question>>,
    /// Where the worker counts its turns, at least ten a second, so that another process sees that it works. `None`
    /// counts none.
    pub turns: Option<&'static AtomicU64>,
}

impl WorkerConfig {
    /// The defaults: both directions, 256 frames a batch from the nic and 64 from the host, the default
    /// pause, the target and interval of RFC 8289, no ACKs inserted, no reports. The seed of the engine is drawn at
    /// random.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            engine: Config::new(policy, random_seed()),
            pause: Pause::default(),
            budget_frames: 256,
            host_budget_frames: 64,
            overload: Some(Overload::default()),
            ack_split: None,
            directions: Directions::Both,
            report_every: None,
            look_every: None,
            coalesce: Coalesce::On,
            desk: None,
            turns: None,
        }
    }

    /// Counts a turn.
    pub(super) fn count_turn(&self) {
        if let Some(turns) = self.turns {
            // Nobody else writes it, so that no operation of both at once is needed.
            turns.store(turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }
}

/// Which directions a worker serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directions {
    /// Both.
    #[default]
    Both,
    /// Only to the host. Another worker serves the other direction.
    ToHost,
    /// Only from the host.
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
