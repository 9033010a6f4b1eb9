//! Ring of the nic: counts the frames that the ring lost while the worker did not run.
//!
//! This module is separate because both a worker and the hub of several guests use it.

use rxo_device::{FrameSource, SourceCounters};

use super::work_clock::WorkClock;

/// Finds out which of the ring's losses occurred while the worker did not run.
pub(super) struct Ring {
    pub(super) work: WorkClock,
    /// The number of frames that the ring lost while the worker did not run.
    not_scheduled: u64,
    /// The total number of frames that the ring had lost at the last check.
    lost: u64,
}

impl Ring {
    pub(super) fn new() -> Self {
        Self { work: WorkClock::new(), not_scheduled: 0, lost: 0 }
    }

    /// Attributes the ring's losses since the last check; does so in each turn in which the work clock took a
    /// sample. If the batch left no frame in the ring (`is_all`), the ring was not full, and nothing is
    /// checked.
    pub(super) fn attribute_losses(&mut self, is_all: bool, source: &mut impl FrameSource) {
        let was_away = self.work.take_was_away();
        if let Some(was_away) = was_away.filter(|_| !is_all) {
            self.attribute(source.counters().ring_drops, was_away);
        }
    }

    /// Returns the counters of `source`, and how many of its `ring_drops` occurred while the worker did not
    /// run.
    pub(super) fn counters(&mut self, source: &mut impl FrameSource) -> (SourceCounters, u64) {
        let counters = source.counters();
        self.attribute(counters.ring_drops, false);
        (counters, self.not_scheduled)
    }

    fn attribute(&mut self, lost: u64, was_away: bool) {
        let before = std::mem::replace(&mut self.lost, lost);
        if was_away {
            self.not_scheduled += lost.saturating_sub(before);
        }
    }
}
