//! Capacity: the largest packet and the number of flows.

use rxo_testkit::script::{Script, Setup};
use rxo_testkit::{Packet, seg};

use crate::{arrives, deliver_under, groups, payload_lengths, run_all_forms};

const SEGMENT_BYTES: usize = 1460;
const MAX_PACKET_BYTES: usize = 65_535;

/// Builds as many full segments as fit into the largest packet, and one with the remaining bytes plus `more`.
fn large(base: &Packet, header_bytes: usize, more: usize) -> (Vec<Packet>, usize, usize) {
    let most = MAX_PACKET_BYTES - header_bytes;
    let (full, rest) = (most / SEGMENT_BYTES, most % SEGMENT_BYTES + more);
    let segment = |number: usize| {
        let bytes = if number == full { rest } else { SEGMENT_BYTES };
        base.clone().seq((100 + number * SEGMENT_BYTES) as u32).len(bytes)
    };
    ((0..=full).map(segment).collect(), full * SEGMENT_BYTES, rest)
}

#[test]
fn large_max() {
    for (base, header_bytes) in [(seg(), 40), (seg().v6(), 60), (seg().ts(1, 2), 52)] {
        let (packets, full, rest) = large(&base, header_bytes, 0);
        assert_eq!(full + rest + header_bytes, MAX_PACKET_BYTES);
        arrives(&packets, &[full + rest]);
    }
}

#[test]
fn large_rem() {
    for (base, header_bytes) in [(seg(), 40), (seg().v6(), 60), (seg().ts(1, 2), 52)] {
        let (packets, full, rest) = large(&base, header_bytes, 1);
        arrives(&packets, &[full, rest]);
    }
}

#[test]
fn more_than_fits_goes_on_in_the_next() {
    let packets: Vec<_> =
        (0..100).map(|number| seg().seq(100 + number * 1448).len(1448).id(number as u16)).collect();
    arrives(&packets, &[45 * 1448, 45 * 1448, 10 * 1448]);
}

/// A receiver of records does not read the IP length, so an aggregate may exceed an IP packet.
#[test]
fn records_go_beyond_the_largest_packet() {
    for base in [seg(), seg().v6(), seg().ts(1, 2)] {
        let packets = (0..64).map(|number| base.clone().seq(100 + number * 1448).len(1448));
        let setup = Setup { max_bytes: Some(1 << 20), ..Setup::new("remember") };
        let script = Script::one_poll(setup, packets.map(|packet| packet.frame()).collect());
        let observed = run_all_forms(script.clone());
        assert_eq!(payload_lengths(&script, &observed), [64 * 1448]);
    }
}

#[test]
fn a_packet_larger_than_the_policy_allows_goes_alone() {
    let (observed, lengths) =
        deliver_under("rsc-2006", &[seg().len(9000), seg().seq(9100).len(100)]);
    assert_eq!(groups(&observed), [vec![0], vec![1]]);
    assert_eq!(lengths, [9000, 100]);
}

/// Builds the first segments of `flows` flows, then their second segments with PSH.
fn capacity(base: &Packet, flows: u32) -> Vec<Packet> {
    let first = (0..flows).map(|flow| base.clone().flow(flow));
    let second = (0..flows).map(|flow| base.clone().flow(flow).seq(200).psh());
    first.chain(second).collect()
}

#[test]
fn capacity_n() {
    for flows in [1, 8, 40, 64] {
        for base in [seg(), seg().v6()] {
            let (observed, lengths) = deliver_under("linux-gro", &capacity(&base, flows));
            assert_eq!(lengths, vec![200; flows as usize]);
            let flows = flows as usize;
            let pairs: Vec<_> = (0..flows).map(|flow| vec![flow, flow + flows]).collect();
            assert_eq!(groups(&observed), pairs, "the order of the flows");
        }
    }
}

#[test]
fn one_flow_too_many_evicts_the_least_recently_used() {
    let mut packets: Vec<_> = (0..64).map(|flow| seg().flow(flow)).collect();
    packets.push(seg().flow(0).seq(200));
    packets.push(seg().flow(64));
    packets.push(seg().flow(0).seq(300));
    let (observed, _) = deliver_under("linux-gro", &packets);
    assert_eq!(groups(&observed)[0], [1], "flow 1 was used least recently");
    assert!(groups(&observed).contains(&vec![0, 64, 66]));
}

#[test]
fn the_aggregation_limit_is_kept() {
    let packets: Vec<Packet> = (0..50).map(|number| seg().seq(100 + number * 100)).collect();
    for (policy, lengths) in [
        ("menon-2008", vec![2000, 2000, 1000]),
        ("rsc2", vec![200; 25]),
        ("rsc3", [&[300; 6][..], &[200], &[300; 6], &[200], &[300; 3], &[100]].concat()),
        ("rsc5", vec![500; 10]),
        ("inet-lro", vec![5000]),
        ("none", vec![100; 50]),
    ] {
        let (_, arrived) = deliver_under(policy, &packets);
        assert_eq!(arrived, lengths, "{policy}");
    }
}
