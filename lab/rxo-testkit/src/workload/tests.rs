use std::collections::HashSet;

use super::{Traffic, Workload, workload};
use crate::naive;

/// Returns the four bytes at offset `at` of an IPv4 packet without tags, as a number.
fn word(packet: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(packet[at..at + 4].try_into().unwrap())
}

const ALL: [Workload; 14] = [
    Workload::W1,
    Workload::W2,
    Workload::W3,
    Workload::W4,
    Workload::W5,
    Workload::W6,
    Workload::W7,
    Workload::W8,
    Workload::W9,
    Workload::Mixed,
    Workload::BadCase,
    Workload::U1,
    Workload::U2,
    Workload::ManyFlows(1_000_000),
];

#[test]
fn the_same_seed_gives_the_same_packets() {
    for kind in ALL {
        assert_eq!(workload(kind, 300, 5), workload(kind, 300, 5), "{kind:?}");
    }
}

#[test]
fn an_arena_holds_the_same_packets_each_at_a_cache_line() {
    let traffic = Traffic::new(Workload::Mixed, 200, 1);
    let packets = workload(Workload::Mixed, 200, 1);
    assert!(traffic.iter().eq(packets.iter().map(Vec::as_slice)));
    assert!(traffic.iter().all(|packet| packet.as_ptr().addr().is_multiple_of(64)));
}

#[test]
fn checksums_are_valid() {
    for kind in [Workload::W1, Workload::W5, Workload::W7] {
        for packet in workload(kind, 50, 2) {
            assert_eq!(naive::internet_checksum(&packet[14..34]), 0);
            assert_eq!(naive::transport_checksum(&packet[26..34], 6, &packet[34..]), 0);
        }
    }
    for packet in workload(Workload::W9, 50, 2) {
        assert_eq!(naive::transport_checksum(&packet[22..54], 6, &packet[54..]), 0);
    }
}

#[test]
fn datagrams_have_valid_checksums() {
    for packet in [Workload::U1, Workload::U2].map(|kind| workload(kind, 50, 2)).concat() {
        assert_eq!(naive::internet_checksum(&packet[14..34]), 0);
        assert_eq!(naive::transport_checksum(&packet[26..34], 17, &packet[34..]), 0);
    }
}

#[test]
fn w1_is_one_flow_in_order() {
    for pair in workload(Workload::W1, 100, 0).windows(2) {
        assert_eq!(pair[0].len(), 14 + 20 + 32 + 1448);
        assert_eq!(word(&pair[0], 38).wrapping_add(1448), word(&pair[1], 38));
        let id = |packet: &[u8]| (word(packet, 16) & 0xffff) as u16;
        assert_eq!(id(&pair[0]).wrapping_add(1), id(&pair[1]));
    }
}

#[test]
fn w6_swaps_about_five_percent() {
    let packets = workload(Workload::W6, 10_000, 3);
    let back = packets
        .windows(2)
        .filter(|pair| word(&pair[1], 38).wrapping_sub(word(&pair[0], 38)) >> 31 == 1);
    let swapped = 2 * back.count();
    assert!((400..600).contains(&swapped), "{swapped} of 10,000");
}

#[test]
fn w5_and_many_flows_have_that_many() {
    let ports = |packets: Vec<Vec<u8>>| -> usize {
        let keys: HashSet<_> = packets.iter().map(|packet| packet[26..38].to_vec()).collect();
        keys.len()
    };
    assert!(ports(workload(Workload::W5, 60_000, 1)) > 9_900);
    assert!(ports(workload(Workload::ManyFlows(1_000_000), 20_000, 1)) > 19_700);
}

#[test]
fn w7_takes_turns() {
    for (index, packet) in workload(Workload::W7, 64, 0).iter().enumerate() {
        let bytes = if index % 2 == 0 { 1514 } else { 66 };
        assert_eq!(packet.len(), bytes, "packet {index}");
    }
}
