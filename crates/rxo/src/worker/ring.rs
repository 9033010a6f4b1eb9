//! The ring of the nic, as the worker finds it: what was lost there, and while the worker did not run.
//!
//! It is separate because a worker and the hub of several guests have one each.

use rxo_device::{FrameSource, SourceCounters};

use super::work_clock::WorkClock;

/// Attributes what the ring loses.
pub(super) struct Ring {
    pub(super) work: WorkClock,
    /// Frames lost in the ring while the worker did not run.
    not_scheduled: u64,
    /// All that the ring had lost when it was last asked.
    lost: u64,
}

impl Ring {
    pub(super) fn new() -> Self {
        Self { work: WorkClock::new(), not_scheduled: 0, lost: 0 }
    }

    /// Looks at what the ring has lost since the last look, once a turn that follows a sample of the work clock. Without
    /// something left behind the batch, the ring was not full.
    pub(super) fn look(&mut self, is_all: bool, source: &mut impl FrameSource) {
        let was_away = self.work.take_was_away();
        if let Some(was_away) = was_away.filter(|_| !is_all) {
            self.attribute(source.counters().ring_drops, was_away);
        }
    }

    /// The counters of `source`, and how many of its `ring_drops` fell into time in which the worker did not run.
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
