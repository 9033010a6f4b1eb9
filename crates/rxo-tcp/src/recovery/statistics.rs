//! What can be seen of loss recovery from outside.

use rxo_frame::Duration;

use super::scoreboard::Fate;
use super::{Phase, Recovery};

/// Loss recovery at one moment, for tests, logs and TCP_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryStatistics {
    /// What is being recovered from.
    pub phase: RecoveryPhase,
    /// Bytes that the peer holds out of order.
    pub sacked: u32,
    /// Bytes that count as lost and wait to be sent again.
    pub lost: u32,
    /// Bytes in flight that were sent more than once.
    pub retransmitted: u32,
    /// Segments that were sent again so far, each as often as it was.
    pub resent_segments: u32,
    /// How often the retransmission timer fired since the last progress.
    pub backoff: u32,
    /// RTTVAR (RFC 6298, section 2); `None` before the first sample.
    pub rttvar: Option<Duration>,
    /// The least round-trip time; `None` before the first sample.
    pub least_rtt: Option<Duration>,
    /// Acknowledgements that reported a segment received twice (RFC 2883).
    pub duplicates_reported: u32,
    /// Ranges that arrived after later ones, although they were sent once: reordering.
    pub reordered: u32,
}

/// Where loss recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// Nothing is out of order.
    Open,
    /// Something is out of order, and nothing counts as lost.
    Disorder,
    /// ECN has reduced the window, and the flight that was marked is not acknowledged.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl Recovery {
    /// How it stands now. Costs one look at each range that is out.
    pub(crate) fn statistics(&self) -> RecoveryStatistics {
        let again = self
            .board
            .ranges()
            .filter(|range| range.was_retransmitted && range.fate == Fate::InFlight);
        let least = self.rtt.smoothed().map(|_| self.rtt.least());
        RecoveryStatistics {
            phase: self.public_phase(),
            sacked: self.board.sacked(),
            lost: self.board.lost(),
            retransmitted: again.map(super::scoreboard::Sent::bytes).sum(),
            resent_segments: self.resent_segments,
            backoff: self.rtt.backed_off(),
            rttvar: self.rtt.variation(),
            least_rtt: least,
            duplicates_reported: self.rack.duplicates_reported(),
            reordered: self.rack.reordered(),
        }
    }

    fn public_phase(&self) -> RecoveryPhase {
        let is_reduced = self.board.first().is_some_and(|una| self.is_answered(una));
        match self.phase {
            Phase::Recovery { .. } => RecoveryPhase::Recovery,
            Phase::Loss { .. } => RecoveryPhase::Loss,
            Phase::Open if is_reduced => RecoveryPhase::Reduced,
            Phase::Open if self.board.sacked() > 0 || self.duplicates.any() => {
                RecoveryPhase::Disorder
            }
            Phase::Open => RecoveryPhase::Open,
        }
    }
}
