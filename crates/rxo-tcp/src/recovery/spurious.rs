//! Eifel: was a retransmission needed? (RFC 3522 detects, RFC 4015 responds.)
//!
//! When the first acknowledgement after a retransmission echoes a timestamp from before it, the
//! original had arrived: nothing was lost, and the congestion window gets back what it had.

use rxo_frame::Instant;

use super::to_millis;
use crate::congestion::Before;

/// A recovery that may turn out to be needless.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    /// Congestion control as it was.
    before: Before,
    /// When the first retransmission left, as its timestamp says.
    retransmitted_at: Option<Instant>,
}

impl Suspect {
    pub(crate) fn new(before: Before) -> Self {
        Self { before, retransmitted_at: None }
    }

    /// A retransmission leaves; the first one counts.
    pub(crate) fn retransmitted(&mut self, now: Instant) {
        self.retransmitted_at.get_or_insert(to_millis(now));
    }

    /// Whether something was sent again yet.
    pub(crate) fn has_retransmitted(&self) -> bool {
        self.retransmitted_at.is_some()
    }

    /// Congestion control as it was.
    pub(crate) fn into_before(self) -> Before {
        self.before
    }

    /// Handles the first ACK of new data after a retransmission; `echoed` is when the segment was sent whose timestamp the
    /// peer echoes. Returns the congestion state to restore if the retransmission was spurious (Eifel, RFC 3522).
    pub(crate) fn acquit(self, echoed: Option<Instant>) -> Option<Before> {
        let is_needless = echoed? < self.retransmitted_at?;
        is_needless.then_some(self.before)
    }
}
