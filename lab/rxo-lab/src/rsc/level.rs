//! The levels of coalescing that the paper compares in figures 10 to 12.

use rxo_coalesce::Policy;
use serde::Serialize;

/// The largest number of packets in an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Level {
    /// No coalescing; packets take the same path, in the same batches.
    Regular,
    /// At most two packets per aggregate.
    #[serde(rename = "RSC_2")]
    Rsc2,
    /// At most three packets per aggregate.
    #[serde(rename = "RSC_3")]
    Rsc3,
    /// At most five packets per aggregate.
    #[serde(rename = "RSC_5")]
    Rsc5,
}

impl Level {
    pub(super) const ALL: [Self; 4] = [Self::Regular, Self::Rsc2, Self::Rsc3, Self::Rsc5];

    /// Returns the paper's name of the level.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Regular => "Regular",
            Self::Rsc2 => "RSC_2",
            Self::Rsc3 => "RSC_3",
            Self::Rsc5 => "RSC_5",
        }
    }

    pub(super) const fn policy(self) -> Policy {
        match self {
            Self::Regular => Policy::none(),
            Self::Rsc2 => Policy::rsc2(),
            Self::Rsc3 => Policy::rsc3(),
            Self::Rsc5 => Policy::rsc5(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_tables_say_the_papers_names() {
        for level in Level::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.name());
        }
    }
}
