//! The receivers that the sender sends to.

use rxo_testbed::AckRate;
use serde::Serialize;

/// A receiver, by how often it acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Peer {
    /// As Linux does by itself; the paper's first receiver coalesces too.
    Rarely,
    /// Every eight segments, as the paper's second receiver.
    EveryEight,
    /// Each segment: a receiver that takes them one by one. The paper has none.
    EachSegment,
}

impl Peer {
    pub(super) const ALL: [Self; 3] = [Self::Rarely, Self::EveryEight, Self::EachSegment];

    /// The name in tables and in JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rarely => "rarely",
            Self::EveryEight => "every-eight",
            Self::EachSegment => "each-segment",
        }
    }

    /// The name in figures.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Rarely => "rarely",
            Self::EveryEight => "every eight segments",
            Self::EachSegment => "each segment",
        }
    }

    /// The name in sentences.
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
