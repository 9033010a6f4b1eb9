//! Limits: the largest packet, the number of flows.

use super::{Case, at, case};
use crate::{Packet, seg};

/// Fits an MTU of 1500 with any headers.
const SEGMENT_BYTES: usize = 1_400;
const MAX_PACKET_BYTES: usize = 65_535;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, base, header_bytes) in
        [("", seg(), 40), ("", seg().v6(), 60), ("_ts", seg().ts(1, 2), 52)]
    {
        let (packets, full, rest) = large(&base, header_bytes, 0);
        cases.push(case(&format!("large_max{name}"), packets, &[full + rest]));
        let (packets, full, rest) = large(&base, header_bytes, 1);
        cases.push(case(&format!("large_rem{name}"), packets, &[full, rest]));
    }
    for flows in [2, 8, 64] {
        for base in [seg(), seg().v6()] {
            let arrives = vec![200; flows as usize];
            cases.push(case(&format!("capacity_{flows}"), capacity(&base, flows), &arrives));
        }
    }
    cases
}

/// Makes as many full segments as fit into the largest packet, and a last one with the remaining
/// bytes plus `more`. Returns the packets, the payload bytes of the full segments, and those of the
/// last one.
fn large(base: &Packet, header_bytes: usize, more: usize) -> (Vec<Packet>, usize, usize) {
    let most = MAX_PACKET_BYTES - header_bytes;
    let (count, rest) = (most / SEGMENT_BYTES, most % SEGMENT_BYTES + more);
    let full = base.clone().len(SEGMENT_BYTES);
    let mut packets: Vec<_> =
        (0..count).map(|number| at(&full, (number * SEGMENT_BYTES) as u32)).collect();
    packets.push(at(&full, (count * SEGMENT_BYTES) as u32).len(rest));
    (packets, count * SEGMENT_BYTES, rest)
}

/// Makes the first segments of all flows, then second segments with PSH.
fn capacity(base: &Packet, flows: u32) -> Vec<Packet> {
    let first = (0..flows).map(|flow| base.clone().flow(flow));
    let second = (0..flows).map(|flow| at(base, 100).flow(flow).psh());
    first.chain(second).collect()
}
