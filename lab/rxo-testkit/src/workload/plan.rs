//! Plans the order of a workload's packets and their flows.

use super::Workload;
use crate::Random;

/// A planned packet: its flow and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) flow: u32,
    pub(super) what: What,
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Data,
    DataV6,
    PureAck,
    /// A UDP datagram with this many bytes of payload.
    Datagram(usize),
    /// A packet that no policy coalesces; the number selects the reason.
    Bypass(u32),
    /// The first half of a swap: the packet after the next one is sent first.
    Ahead,
    Behind,
}

/// Payload of a QUIC datagram, in bytes.
const DATAGRAM_BYTES: usize = 1_200;
/// Percentage of swapped packets in W6.
const SWAPPED_PERCENT: u64 = 5;
/// Distance between the flow numbers of the parts of a mix.
const PART_STRIDE: u32 = 20_000;

pub(super) fn plan(kind: Workload, packets: usize, random: &mut Random) -> Vec<Turn> {
    match kind {
        Workload::W6 => swapped(packets, random),
        Workload::Mixed => mixed(packets, random),
        _ => (0..packets).map(|index| turn(kind, index as u32, random)).collect(),
    }
}

/// Plans packet `index` of a workload whose packets are independent of each other.
fn turn(kind: Workload, index: u32, random: &mut Random) -> Turn {
    let data = |flow| Turn { flow, what: What::Data };
    match kind {
        Workload::W1 | Workload::W6 | Workload::Mixed => data(0),
        Workload::W2 => data(index % 16),
        Workload::W3 => data(index / 4 % 16),
        Workload::W4 => data(random.below(400) as u32),
        Workload::W5 => data(random.below(10_000) as u32),
        Workload::W7 if index.is_multiple_of(2) => data(16),
        Workload::W7 => Turn { flow: index / 2 % 16, what: What::PureAck },
        Workload::W8 => Turn { flow: index % 16, what: What::PureAck },
        Workload::W9 => Turn { flow: index / 4 % 16, what: What::DataV6 },
        Workload::U1 => Turn { flow: 0, what: What::Datagram(DATAGRAM_BYTES) },
        Workload::U2 => {
            let bytes = if index % 8 == 7 { DATAGRAM_BYTES / 2 } else { DATAGRAM_BYTES };
            Turn { flow: index / 8 % 16, what: What::Datagram(bytes) }
        }
        Workload::BadCase => Turn { flow: index % 16, what: What::Bypass(index) },
        Workload::ManyFlows(flows) => data(random.below(u64::from(flows.max(1))) as u32),
    }
}

/// Plans one flow in which five of a hundred packets are swapped with a neighbour.
fn swapped(packets: usize, random: &mut Random) -> Vec<Turn> {
    let mut turns = Vec::with_capacity(packets + 1);
    while turns.len() < packets {
        // A swap moves two packets, so half as many swaps give the percentage.
        if random.below(200) < SWAPPED_PERCENT && turns.len() + 2 <= packets {
            turns.push(Turn { flow: 0, what: What::Ahead });
            turns.push(Turn { flow: 0, what: What::Behind });
        } else {
            turns.push(Turn { flow: 0, what: What::Data });
        }
    }
    turns
}

fn mixed(packets: usize, random: &mut Random) -> Vec<Turn> {
    let mut parts: Vec<_> = Workload::COMPARED
        .iter()
        .zip(0..)
        .map(|(kind, part): (_, u32)| {
            let turns = plan(*kind, packets, random).into_iter();
            turns.map(move |turn| Turn { flow: turn.flow + part * PART_STRIDE, ..turn })
        })
        .collect();
    let mut turns = Vec::with_capacity(packets + 8);
    while turns.len() < packets {
        let part = random.below(parts.len() as u64) as usize;
        let stretch = 1 + random.below(8) as usize;
        turns.extend(parts[part].by_ref().take(stretch));
    }
    turns.truncate(packets);
    turns
}
