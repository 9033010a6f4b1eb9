//! Configuration of a worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rxo_coalesce::{Config, Policy};

use super::{Coalesce, Overload, Pause, Question};
use crate::desk::Desk;
use crate::random_seed;

/// The configuration of a worker between two devices.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The configuration of the engine. The worker overwrites its link kind and batch size.
    pub engine: Config,
    /// The rule by which the worker pauses so that frames accumulate before the next batch.
    pub pause: Pause,
    /// The maximum number of frames in a batch from the nic, 1 to 32,768. An aggregate of a work-conserving policy
    /// cannot be larger than a batch, which many flows share. Must be well below the number of slots in the nic's ring,
    /// because the frames of a batch occupy their slots until the batch is processed.
    pub budget_frames: usize,
    /// The maximum number of frames in a batch from the host, 1 to 32,768. A small number keeps the nic
    /// responsive, because each frame may be a GSO frame of 64 KiB, and the worker does not read the nic while
    /// it sends the batch.
    pub host_budget_frames: usize,
    /// The limits beyond which frames are dropped because the queue before the worker is too long. `None` drops no
    /// frames; then only the size of the ring limits the queue.
    pub overload: Option<Overload>,
    /// The number of full-sized segments per ACK, 1 to 64, for peers that count ACKs: if an ACK of the host
    /// covers more, ACKs are inserted before it. `None`, the default, inserts nothing. Requires both
    /// directions.
    pub ack_split: Option<u16>,
    /// The directions that the worker serves.
    pub directions: Directions,
    /// The interval between two reports to the observer, at least 1 ms; `None` sends no reports.
    pub report_every: Option<Duration>,
    /// The maximum time between two calls of the observer, at least 1 ms: the observer is also called between reports,
    /// so that it can check the sinks for notices. With `None`, the observer is called for reports only.
    pub look_every: Option<Duration>,
    /// The mode of coalescing. [`Coalesce::Auto`] decides once per [`WorkerConfig::look_every`], so it requires
    /// that field to be set.
    pub coalesce: Coalesce,
    /// The desk on which other threads put questions to the running worker; `None` for no questions.
    pub desk: Option<Desk<Question>>,
    /// The counter of the worker's turns (passes of its loop), at least ten per second, by which another
    /// process sees that the worker runs. `None` counts nothing.
    pub turns: Option<&'static AtomicU64>,
}

impl WorkerConfig {
    /// Returns the default configuration: both directions, 256 frames per batch from the nic and 64 from the
    /// host, the default pause, the target and interval of RFC 8289, no inserted ACKs, and no reports. The
    /// engine's seed is random.
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

    /// Increments the counter of turns, if there is one.
    pub(super) fn count_turn(&self) {
        if let Some(turns) = self.turns {
            // Only this thread writes the counter, so no atomic increment is needed.
            turns.store(turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }
}

/// The directions of traffic that a worker serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directions {
    /// The worker serves both directions.
    #[default]
    Both,
    /// The worker serves only the direction from the nic to the host; another worker serves the direction to
    /// the nic.
    ToHost,
    /// The worker serves only the direction from the host to the nic.
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
