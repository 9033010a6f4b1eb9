//! A case: the processing of ACKs, the file size, and the clients' ACK rate.

use rxo_coalesce::PureAckRule;
use rxo_host::{FastModules, FastPath, HostConfig};
use serde::{Deserialize, Serialize};

/// The path of a pure ACK through the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// Each ACK goes separately through the engine and stack: the paper's Copybreak.
    Stack,
    /// Each ACK goes separately through the fast path: the paper's TCP-PARO.
    FastPath,
    /// The engine aggregates ACKs, with a record of each.
    Records,
    /// The engine aggregates ACKs, and the connection sees only the last of them: Gallatin's patch.
    Last,
    /// The fast path passes all ACKs of a batch to their connection in one call.
    Batches,
}

impl Way {
    /// The ways of `rxo-lab paro`.
    pub(super) const ALL: [Self; 4] = [Self::Stack, Self::FastPath, Self::Records, Self::Batches];

    /// Configures `config` for this way.
    pub(super) fn apply(self, config: &mut HostConfig) {
        config.engine.policy.pure_acks = match self {
            Self::Records => PureAckRule::Record,
            Self::Last => PureAckRule::Single,
            Self::Stack | Self::FastPath | Self::Batches => PureAckRule::Bypass,
        };
        let is_fast = matches!(self, Self::FastPath | Self::Batches);
        config.fast_path = FastPath {
            modules: if is_fast { FastModules::PURE_ACK } else { FastModules::OFF },
            one_by_one: self == Self::FastPath,
            ..FastPath::default()
        };
    }
}

/// The ACK rate of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AckRate {
    /// An ACK for each segment.
    Each,
    /// An ACK for every second segment.
    Second,
    /// An ACK for every eighth segment.
    Eighth,
    /// One ACK for each frame of the server, which holds up to 44 segments, as Linux sends after its GRO.
    Merged,
}

impl AckRate {
    /// The rates of `rxo-lab paro`.
    pub(super) const ALL: [Self; 2] = [Self::Second, Self::Merged];

    /// Returns `true` if `unacknowledged` segments are acknowledged now, the last of them being the last of a frame or
    /// not.
    pub(super) const fn is_due(self, unacknowledged: usize, is_last: bool) -> bool {
        match self {
            Self::Each => true,
            Self::Second => unacknowledged >= 2,
            Self::Eighth => unacknowledged >= 8,
            Self::Merged => is_last,
        }
    }
}

/// The parameters of one count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Case {
    pub(crate) way: Way,
    pub(crate) file_bytes: u64,
    pub(crate) acks: AckRate,
}

/// The file sizes of the paper's Table 1.
pub(super) const FILE_BYTES: [u64; 5] = [512 << 10, 1 << 20, PROFILED_BYTES, 4 << 20, 8 << 20];
/// File size of Figures 3 and 4, in bytes.
pub(super) const PROFILED_BYTES: u64 = 2 << 20;
