//! The receivers of the experiment.

use rxo_testbed::AckRate;
use serde::Serialize;

/// A receiver, classified by its ACK rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Peer {
    /// Linux's own ACK rate. The paper's first receiver also coalesces.
    Rarely,
    /// One ACK for eight segments, like the paper's second receiver.
    EveryEight,
    /// One ACK for each segment, as from a receiver without coalescing. The paper did not measure one.
    EachSegment,
}

impl Peer {
    pub(super) const ALL: [Self; 3] = [Self::Rarely, Self::EveryEight, Self::EachSegment];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rarely => "rarely",
            Self::EveryEight => "every eight segments",
            Self::EachSegment => "each segment",
        }
    }

    pub(super) const fn acks(self) -> AckRate {
        match self {
            Self::Rarely => AckRate::Default,
            Self::EveryEight => AckRate::Groups(8),
            Self::EachSegment => AckRate::EachSegment,
        }
    }
}
