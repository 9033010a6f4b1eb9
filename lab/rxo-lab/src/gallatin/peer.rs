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

    /// Returns the peer's name in tables and JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rarely => "rarely",
            Self::EveryEight => "every-eight",
            Self::EachSegment => "each-segment",
        }
    }

    /// Returns the peer's name in figures.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Rarely => "rarely",
            Self::EveryEight => "every eight segments",
            Self::EachSegment => "each segment",
        }
    }

    /// Returns the peer's name in sentences.
    pub(super) const fn described(self) -> &'static str {
        match self {
            Self::Rarely => "a receiver that acknowledges rarely, as Linux does by itself",
            Self::EveryEight => "a receiver that acknowledges every eight segments",
            Self::EachSegment => "a receiver that acknowledges each segment",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_tables_say_the_same_name() {
        for peer in Peer::ALL {
            assert_eq!(serde_json::to_value(peer).unwrap(), peer.name());
        }
    }
}
