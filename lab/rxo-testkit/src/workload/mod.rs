//! The traffic of the speed benchmarks.
//!
//! W1-W9 are the workloads of the comparison with other engines. The others show effects that a benchmark
//! with one kind of traffic hides. U1 and U2 are UDP. All segments carry 1448 bytes and an aligned timestamp,
//! and have valid checksums, DF, and an ID that grows by one per packet of the flow. The same arguments give
//! the same packets.

mod flow;
mod plan;
mod traffic;

pub use traffic::Traffic;

use crate::Random;
use flow::Flows;

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// One flow in order.
    W1,
    /// 16 flows, one packet of each in turn.
    W2,
    /// 16 flows in turn, runs of four packets.
    W3,
    /// 400 flows at random.
    W4,
    /// 10,000 flows at random.
    W5,
    /// W1, 5 % of the packets swapped with their successor.
    W6,
    /// A data packet of one flow and a pure ACK of one of 16 other flows, in turn.
    W7,
    /// Pure ACKs of 16 flows in turn.
    W8,
    /// W3 on IPv6.
    W9,
    /// Stretches of 1 to 8 packets of W1-W9, chosen at random, so that no branch is predictable.
    Mixed,
    /// Packets that are never coalesced, for a dozen different reasons.
    BadCase,
    /// One flow of UDP datagrams with 1200 bytes of payload, as sent by QUIC.
    U1,
    /// 16 flows of QUIC-like datagrams in turn, in runs of eight whose last datagram is shorter.
    U2,
    /// The given number of flows, with each packet from a random one.
    ManyFlows(u32),
}

impl Workload {
    /// The workloads of the comparison with other engines, W1-W9.
    pub const COMPARED: [Self; 9] =
        [Self::W1, Self::W2, Self::W3, Self::W4, Self::W5, Self::W6, Self::W7, Self::W8, Self::W9];

    /// Returns the workload's name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::W1 => "W1",
            Self::W2 => "W2",
            Self::W3 => "W3",
            Self::W4 => "W4",
            Self::W5 => "W5",
            Self::W6 => "W6",
            Self::W7 => "W7",
            Self::W8 => "W8",
            Self::W9 => "W9",
            Self::Mixed => "mixed",
            Self::BadCase => "bad-case",
            Self::U1 => "U1",
            Self::U2 => "U2",
            Self::ManyFlows(_) => "many-flows",
        }
    }
}

/// Makes `packets` packets of `kind`, each in its own `Vec`.
#[must_use]
pub fn workload(kind: Workload, packets: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut out = Vec::with_capacity(packets);
    generate(kind, packets, seed, |packet| out.push(packet));
    out
}

/// Makes the packets one by one and passes each to `take`.
pub(crate) fn generate(kind: Workload, packets: usize, seed: u64, mut take: impl FnMut(Vec<u8>)) {
    let mut flows = Flows::new();
    let mut random = Random::new(seed);
    for turn in plan::plan(kind, packets, &mut random) {
        take(flows.next(turn));
    }
}

#[cfg(test)]
mod tests;
