//! Statistics of loss recovery: a snapshot for tests, logs and TCP_INFO.

use rxo_frame::Duration;

use super::scoreboard::RangeState;
use super::{Phase, Recovery};

/// The state of loss recovery at one moment, for tests, logs and TCP_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryStatistics {
    /// The phase of loss recovery.
    pub phase: RecoveryPhase,
    /// Number of bytes that the peer holds out of order.
    pub sacked: u32,
    /// Number of bytes that are marked lost and wait for retransmission.
    pub lost: u32,
    /// Number of bytes in flight that were sent more than once.
    pub retransmitted: u32,
    /// Number of segments retransmitted so far.
    pub resent_segments: u32,
    /// The number of times that the retransmission timer fired since new data was last acknowledged.
    pub backoff: u32,
    /// RTTVAR, the variation of the round-trip time (RFC 6298, section 2); `None` before the first sample.
    pub rttvar: Option<Duration>,
    /// The minimum round-trip time; `None` before the first sample.
    pub least_rtt: Option<Duration>,
    /// The number of ACKs that reported a segment received twice (RFC 2883).
    pub duplicates_reported: u32,
    /// The number of ranges that were sent only once and arrived after ranges sent later: a sign of
    /// reordering.
    pub reordered: u32,
}

/// The phase of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// Nothing is out of order, lost or being recovered.
    Open,
    /// Data is out of order, but none is marked lost.
    Disorder,
    /// An ECN mark has reduced the window, and the marked flight is not acknowledged yet.
    Reduced,
    /// Lost data is retransmitted by fast recovery.
    Recovery,
    /// Lost data is retransmitted after a retransmission timeout.
    Loss,
}

impl Recovery {
    /// Returns a snapshot. Costs O(outstanding ranges).
    pub(crate) fn statistics(&self) -> RecoveryStatistics {
        let again = self
            .board
            .ranges()
            .filter(|range| range.was_retransmitted && range.state == RangeState::InFlight);
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
