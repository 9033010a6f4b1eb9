//! Eifel: detects spurious retransmissions (RFC 3522) and undoes their effect (RFC 4015).
//!
//! If the first ACK after a retransmission echoes a timestamp that was sent before the
//! retransmission, the original segment had arrived. In this case nothing was lost, and the congestion window
//! is restored.

use rxo_frame::Instant;

use super::to_millis;
use crate::congestion::Before;

/// A recovery that may prove spurious.
#[derive(Clone, Debug)]
pub(crate) struct SuspectedRecovery {
    /// The congestion control state before the recovery.
    before: Before,
    /// The time of the first retransmission, to the millisecond; `None` before any retransmission.
    retransmitted_at: Option<Instant>,
}

impl SuspectedRecovery {
    pub(crate) fn new(before: Before) -> Self {
        Self { before, retransmitted_at: None }
    }

    /// Records a retransmission at `now`. Only the first one counts.
    pub(crate) fn retransmitted(&mut self, now: Instant) {
        self.retransmitted_at.get_or_insert(to_millis(now));
    }

    /// Returns `true` if anything has been retransmitted.
    pub(crate) fn has_retransmitted(&self) -> bool {
        self.retransmitted_at.is_some()
    }

    /// Returns the congestion control state before the recovery.
    pub(crate) fn into_before(self) -> Before {
        self.before
    }

    /// Handles the first ACK of new data after a retransmission. `echoed` is the send time of the segment
    /// whose timestamp the peer echoes. Returns the congestion state to restore if the retransmission was
    /// spurious (RFC 3522).
    pub(crate) fn check_spurious(self, echoed: Option<Instant>) -> Option<Before> {
        let is_needless = echoed? < self.retransmitted_at?;
        is_needless.then_some(self.before)
    }
}
