//! A case: the way of an ACK, the size of files, and the rate at which clients acknowledge.

use rxo_coalesce::PureAckRule;
use rxo_host::{FastModules, FastPath, HostConfig};
use serde::Serialize;

use super::paper::SIZES;

/// The way of a pure ACK through the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Way {
    /// Each for itself through the engine: the paper's Copybreak.
    Stack,
    /// The fast path, each for itself: the paper's TCP-PARO.
    FastPath,
    /// Aggregated by the engine, with a record of each.
    Records,
    /// The fast path; a connection gets its ACKs of a batch in one call.
    Batches,
}

impl Way {
    pub(super) const ALL: [Self; 4] = [Self::Stack, Self::FastPath, Self::Records, Self::Batches];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::FastPath => "fast-path",
            Self::Records => "records",
            Self::Batches => "batches",
        }
    }

    /// Its name in tables.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::FastPath => "fast path",
            Self::Records => "records",
            Self::Batches => "fast path in batches",
        }
    }

    pub(super) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }

    /// Sets up `config` for it.
    pub(super) fn apply(self, config: &mut HostConfig) {
        if self != Self::Records {
            config.engine.policy.pure_acks = PureAckRule::Bypass;
        }
        let is_fast = matches!(self, Self::FastPath | Self::Batches);
        config.fast_path = FastPath {
            modules: if is_fast { FastModules::ON } else { FastModules::OFF },
            one_by_one: self == Self::FastPath,
            ..FastPath::default()
        };
    }
}

/// The rate at which a client acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AckRate {
    /// Every second segment: half an ACK a segment.
    Second,
    /// Everything that has arrived at once, as Linux does when its GRO has merged it: an ACK for each frame of the
    /// server, which is up to 44 segments.
    Merged,
}

impl AckRate {
    pub(super) const ALL: [Self; 2] = [Self::Second, Self::Merged];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Merged => "merged",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Second => "an ACK for two segments",
            Self::Merged => "an ACK for what GRO has merged",
        }
    }

    pub(super) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rate| rate.name() == name)
    }
}

/// One count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    pub(super) way: Way,
    pub(super) file_bytes: u64,
    pub(super) acks: AckRate,
}

impl Case {
    pub(super) fn name(self) -> String {
        format!("{}, {}, {}", size(self.file_bytes), self.way.title(), self.acks.title())
    }
}

/// The size of a file, as the paper's table has it.
pub(super) fn size(file_bytes: u64) -> String {
    let known = SIZES.into_iter().find(|(bytes, _)| *bytes == file_bytes);
    known.map_or_else(|| format!("{} KB", file_bytes >> 10), |(_, name)| name.to_owned())
}
