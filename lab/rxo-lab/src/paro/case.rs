//! A case: the processing of ACKs, the file size, and the clients' ACK rate.

use rxo_coalesce::PureAckRule;
use rxo_host::{FastModules, FastPath, HostConfig};
use serde::{Deserialize, Serialize};

/// The path of a pure ACK through the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Way {
    /// Each ACK goes separately through the engine and stack: the paper's Copybreak.
    Stack,
    /// Each ACK goes separately through the fast path: the paper's TCP-PARO.
    FastPath,
    /// The engine aggregates ACKs, with a record of each.
    Records,
    /// The fast path passes all ACKs of a batch to their connection in one call.
    Batches,
}

impl Way {
    pub(super) const ALL: [Self; 4] = [Self::Stack, Self::FastPath, Self::Records, Self::Batches];

    /// Configures `config` for this way.
    pub(super) fn apply(self, config: &mut HostConfig) {
        if self != Self::Records {
            config.engine.policy.pure_acks = PureAckRule::Bypass;
        }
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
pub(super) enum AckRate {
    /// An ACK for every second segment.
    Second,
    /// One ACK for each frame of the server, which holds up to 44 segments, as Linux sends after its GRO.
    Merged,
}

impl AckRate {
    pub(super) const ALL: [Self; 2] = [Self::Second, Self::Merged];
}

/// The parameters of one count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Case {
    pub(super) way: Way,
    pub(super) file_bytes: u64,
    pub(super) acks: AckRate,
}

/// The file sizes of the paper's Table 1.
pub(super) const FILE_BYTES: [u64; 5] = [512 << 10, 1 << 20, PROFILED_BYTES, 4 << 20, 8 << 20];
/// File size of Figures 3 and 4, in bytes.
pub(super) const PROFILED_BYTES: u64 = 2 << 20;
