//! Equal captures compare equal, and each planted difference is found at its position.

use proptest::prelude::*;
use rxo_testkit::{Packet, arp, seg, udp};

use super::*;

fn of_bytes(bytes: Vec<u8>) -> Record {
    let original_bytes = bytes.len() as u32;
    Record { bytes: bytes.into(), original_bytes, ..Record::default() }
}

fn record(packet: &Packet) -> Record {
    of_bytes(packet.bytes())
}

fn compare(a: &[Packet], b: &[Packet]) -> ComparisonResult {
    compare_within(Limits::default(), a, b)
}

fn compare_within(limits: Limits, a: &[Packet], b: &[Packet]) -> ComparisonResult {
    let records = [a, b].map(|packets| packets.iter().map(record).collect::<Vec<_>>());
    compare_records(limits, &records, LinkType::ETHERNET)
}

fn compare_records(limits: Limits, records: &[Vec<Record>; 2], link: LinkType) -> ComparisonResult {
    let mut comparison = Comparison::new(limits);
    let mut rest = [records[0].iter(), records[1].iter()];
    while let Some(side) = comparison.next_side() {
        match rest[side.index()].next() {
            Some(record) => comparison.push(side, record, link),
            None => comparison.end(side),
        }
    }
    comparison.finish()
}

fn only(verdict: &ComparisonResult) -> &Difference {
    assert_eq!(verdict.differences.len(), 1, "{verdict:?}");
    &verdict.differences[0]
}

/// Returns ten segments of 100 bytes. The payload depends on its position in the stream.
fn stream() -> Vec<Packet> {
    (0..10).map(|n| seg().seq(100 + 100 * n).len(100).id(n as u16)).collect()
}

/// Returns the same stream in packets of other lengths.
fn recut(lengths: &[usize]) -> Vec<Packet> {
    let mut seq = 100;
    let cut = |&len: &usize| {
        let packet = seg().seq(seq).len(len);
        seq += len as u32;
        packet
    };
    lengths.iter().map(cut).collect()
}

#[test]
fn a_capture_equals_itself() {
    let mut packets = stream();
    packets.extend([udp().len(30), arp(), seg().fragment(0, true), seg().v6(), seg().flow(7)]);
    let verdict = compare(&packets, &packets);
    assert!(verdict.equal, "{verdict:?}");
    assert_eq!((verdict.packets_a, verdict.packets_b, verdict.flows), (15, 15, 6));
    assert_eq!(verdict.equal_payload_bytes, 1_200);
}

#[test]
fn how_a_stream_is_cut_does_not_matter() {
    for lengths in [&[1_000][..], &[1; 1_000], &[250, 250, 500], &[100, 1, 899]] {
        let (a, b) = (stream(), recut(lengths));
        assert!(compare(&a, &b).equal && compare(&b, &a).equal, "{lengths:?}");
    }
}

#[test]
fn retransmitted_and_reordered_data_count_as_they_are() {
    let mut a = stream();
    a.push(a[3].clone());
    a.swap(5, 6);
    assert!(compare(&a, &a).equal);
    let verdict = compare(&a, &stream());
    assert_eq!(only(&verdict).kind, Kind::Sequence);
}

#[test]
fn a_flipped_byte_is_found_at_its_offset() {
    let mut bytes = record(&recut(&[1_000])[0]).bytes.as_ref().to_vec();
    let place = bytes.len() - 1_000 + 637;
    bytes[place] ^= 1;
    let records = [stream().iter().map(record).collect(), vec![of_bytes(bytes)]];
    let verdict = compare_records(Limits::default(), &records, LinkType::ETHERNET);
    let found = only(&verdict);
    assert_eq!(found.kind, Kind::Payload);
    assert_eq!((found.stream_offset, found.packet_a, found.packet_b), (637, Some(7), Some(1)));
    assert!(!verdict.equal);
}

#[test]
fn what_is_planted_is_found_in_either_direction() {
    /// A row of differences: a kind, a change of the second capture, and the packet of the first capture in
    /// which the difference must be found.
    type Row = (Kind, fn(&mut Vec<Packet>), u64);
    let rows: [Row; 14] = [
        (Kind::Sequence, |b| b.swap(3, 4), 4),
        (Kind::Sequence, |b| drop(b.remove(6)), 7),
        (Kind::Sequence, |b| b.insert(2, b[1].clone()), 3),
        (Kind::Acknowledgement, |b| b[5] = b[5].clone().ack(101), 6),
        (Kind::Window, |b| b[5] = b[5].clone().window(1), 6),
        (Kind::Options, |b| b[5] = b[5].clone().ts(1, 2), 6),
        (Kind::Ecn, |b| b[8] = b[8].clone().tos(3), 9),
        (Kind::Ecn, |b| b[8] = b[8].clone().ece(), 9),
        (Kind::Ecn, |b| b[8] = b[8].clone().cwr(), 9),
        (Kind::TrafficClass, |b| b[8] = b[8].clone().tos(4), 9),
        (Kind::Flags, |b| b[0] = b[0].clone().psh(), 1),
        (Kind::Flags, |b| b[9] = b[9].clone().fin(), 10),
        (Kind::Flags, |b| b[9] = b[9].clone().urgent(7), 10),
        (Kind::Order, |b| b.insert(4, seg().seq(500).pure_ack()), 5),
    ];
    for (kind, change, packet) in rows {
        let (a, mut b) = (stream(), stream());
        change(&mut b);
        let (there, back) = (compare(&a, &b), compare(&b, &a));
        let (found, mirrored) = (only(&there), only(&back));
        assert_eq!((found.kind, found.packet_a), (kind, Some(packet)), "{found:?}");
        assert_eq!((mirrored.kind, mirrored.packet_b), (kind, Some(packet)), "{mirrored:?}");
        assert_eq!((&found.a, &found.b), (&mirrored.b, &mirrored.a));
    }
}

#[test]
fn marks_are_compared_inside_an_aggregate() {
    let mut a = stream();
    a[4] = a[4].clone().tos(3);
    let verdict = compare(&a, &recut(&[1_000]));
    let found = only(&verdict);
    assert_eq!((found.kind, found.stream_offset, found.packet_a), (Kind::Ecn, 400, Some(5)));
}

#[test]
fn an_aggregate_says_the_last_acknowledgement_and_collects_psh() {
    let mut a = stream();
    a[3] = a[3].clone().ack(150).psh();
    a[9] = a[9].clone().ack(200).window(9).psh();
    let whole = |packet: Packet| vec![packet.seq(100).len(1_000)];
    assert!(compare(&a, &whole(seg().ack(200).window(9).psh())).equal);
    let rows = [
        (Kind::Acknowledgement, seg().ack(150).window(9).psh()),
        (Kind::Window, seg().ack(200).window(8).psh()),
        (Kind::Flags, seg().ack(200).window(9)),
    ];
    for (kind, packet) in rows {
        let verdict = compare(&a, &whole(packet));
        assert_eq!((only(&verdict).kind, only(&verdict).packet_a), (kind, Some(10)));
    }
}

#[test]
fn every_pure_ack_counts() {
    let acks = |numbers: &[u32]| -> Vec<Packet> {
        numbers.iter().map(|number| seg().pure_ack().ack(*number)).collect()
    };
    let (all, fewer) = (acks(&[1, 2, 2, 3]), acks(&[1, 2, 3]));
    let verdict = compare(&all, &fewer);
    let found = only(&verdict);
    let packets = (found.packet_a, found.packet_b);
    assert_eq!((found.kind, packets), (Kind::Acknowledgement, (Some(3), Some(3))));
    let verdict = compare(&all, &all[..3]);
    let found = only(&verdict);
    assert_eq!((found.kind, found.packet_a, found.packet_b), (Kind::Missing, Some(4), None));
    assert!(found.a.contains("ACK") && found.b == "nothing");
}

#[test]
fn packets_that_are_not_tcp_are_compared_as_they_are() {
    let a = [udp().len(20), arp(), seg().fragment(9, false)];
    let others = [udp().len(20).stream(5), arp().padded(), seg().fragment(9, true)];
    for (number, other) in others.into_iter().enumerate() {
        let mut b = a.clone();
        b[number] = other;
        let verdict = compare(&a, &b);
        let found = only(&verdict);
        assert_eq!((found.kind, found.packet_a), (Kind::Packet, Some(number as u64 + 1)));
    }
    let marked = [udp().len(20).tos(3), arp(), seg().fragment(9, false)];
    assert_eq!(only(&compare(&a, &marked)).kind, Kind::Ecn);
}

/// Returns five datagrams as segmentation makes them, and the GSO frame that they form.
fn datagrams() -> ([Packet; 5], Packet) {
    let part =
        |n: usize| udp().id(n as u16).seq(300 * n as u32).len(if n == 4 { 100 } else { 300 });
    (core::array::from_fn(part), udp().seq(0).len(4 * 300 + 100))
}

#[test]
fn datagrams_that_were_coalesced_are_equal_to_those_they_were_made_of() {
    let (single, merged) = datagrams();
    for (a, b) in
        [(&single[..], std::slice::from_ref(&merged)), (std::slice::from_ref(&merged), &single)]
    {
        let verdict = compare(a, b);
        assert!(verdict.equal, "{verdict:?}");
        assert_eq!(verdict.forgotten_segments, 4);
    }
}

#[test]
fn datagrams_that_segmentation_would_not_make_are_a_difference() {
    let (single, merged) = datagrams();
    let longer_last = vec![udp().seq(0).len(100), udp().seq(100).len(300)];
    let cases = [
        (longer_last, udp().seq(0).len(400)),
        (single[..4].to_vec(), merged.clone()),
        (vec![udp().len(0)], merged.clone()),
    ];
    for (number, (a, b)) in cases.into_iter().enumerate() {
        let b = [b];
        assert!(!compare(&a, &b).equal && !compare(&b, &a).equal, "case {number}");
    }
    for number in 0..5 {
        let mut changed = single.clone();
        changed[number] = changed[number].clone().stream(9);
        let verdict = compare(&changed, std::slice::from_ref(&merged));
        let found = only(&verdict);
        assert_eq!((found.kind, found.packet_a), (Kind::Packet, Some(number as u64 + 1)));
    }
}

#[test]
fn datagrams_that_both_captures_coalesced_in_other_places_are_undecided() {
    let (_, whole) = datagrams();
    let halves = [udp().seq(0).len(600), udp().seq(600).len(700)];
    for (a, b) in
        [(std::slice::from_ref(&whole), &halves[..]), (&halves, std::slice::from_ref(&whole))]
    {
        let verdict = compare(a, b);
        assert!(!verdict.equal && verdict.differences.is_empty(), "{verdict:?}");
        let [found] = &verdict.undecided[..] else { panic!("{verdict:?}") };
        assert_eq!(found.kind, Kind::Datagrams);
        let packets = [found.packet_a, found.packet_b];
        assert!(packets == [Some(1), Some(2)] || packets == [Some(2), Some(1)], "{found:?}");
    }
}

#[test]
fn what_follows_undecided_datagrams_is_compared() {
    let (_, whole) = datagrams();
    let a = [whole, udp().seq(1_300).len(50)];
    let mut b = vec![udp().seq(0).len(600), udp().seq(600).len(700), a[1].clone()];
    assert_eq!(compare(&a, &b).undecided.len(), 1);
    b[2] = udp().seq(9).len(50);
    let verdict = compare(&a, &b);
    assert_eq!((only(&verdict).kind, only(&verdict).packet_b), (Kind::Packet, Some(3)));
    b.truncate(1);
    assert_eq!(only(&compare(&a[..1], &b)).kind, Kind::Missing);
}

#[test]
fn an_empty_datagram_is_in_no_other() {
    let verdict = compare(&[udp().len(0)], &[datagrams().1]);
    assert_eq!((only(&verdict).kind, verdict.undecided.len()), (Kind::Packet, 0));
}

#[test]
fn one_difference_is_told_of_each_flow() {
    let of_flow = |n: u32| seg().flow(n).len(10);
    let a: Vec<Packet> = (0..50).map(|n| of_flow(n % 5)).collect();
    let b: Vec<Packet> = (0..50).map(|n| of_flow(n % 5).seq(7)).collect();
    let verdict = compare(&a, &b);
    assert_eq!((verdict.differences.len(), verdict.flows, verdict.stopped), (5, 5, false));
    let limits = Limits { differences: 3, ..Limits::default() };
    let verdict = compare_within(limits, &a, &b);
    assert_eq!((verdict.differences.len(), verdict.stopped), (3, true));
}

#[test]
fn what_waits_longer_than_the_limit_allows_is_missing() {
    let limits = Limits { waiting_bytes: 20_000, ..Limits::default() };
    let many: Vec<Packet> = (0..100).map(|n| seg().flow(n).len(500)).collect();
    let late: Vec<Packet> = many[1..].iter().chain(&many[..1]).cloned().collect();
    let verdict = compare_within(limits, &many, &late);
    assert!(verdict.equal, "one packet waits: {verdict:?}");
    let reversed: Vec<Packet> = many.iter().rev().cloned().collect();
    let verdict = compare_within(limits, &many, &reversed);
    let found = &verdict.differences[0];
    assert_eq!((found.kind, found.packet_a, found.packet_b), (Kind::Missing, Some(1), None));
}

#[test]
fn what_a_cut_capture_may_have_had_is_not_missed_but_what_it_had_is() {
    let whole = stream();
    for first in [Side::A, Side::B] {
        let compare = |cut: &[Packet]| {
            let mut comparison = Comparison::new(Limits::default());
            for packet in cut {
                comparison.push(first, &record(packet), LinkType::ETHERNET);
            }
            comparison.cut(first);
            for packet in &whole {
                comparison.push(first.other(), &record(packet), LinkType::ETHERNET);
            }
            comparison.end(first.other());
            assert_eq!(comparison.next_side(), None);
            comparison.finish()
        };
        let verdict = compare(&recut(&[250, 250]));
        assert!(verdict.equal && verdict.equal_payload_bytes == 500, "{verdict:?}");
        assert!(!compare(&recut(&[250, 250, 700])).equal);
    }
}

#[test]
fn flows_beyond_the_limit_are_forgotten_while_equal() {
    let limits = Limits { flows: 10, ..Limits::default() };
    let many: Vec<Packet> = (0..100).map(|n| seg().flow(n).len(500)).collect();
    let verdict = compare_within(limits, &many, &many);
    assert!(verdict.equal && verdict.forgotten_flows >= 90, "{verdict:?}");
    assert_eq!(verdict.equal_payload_bytes, 50_000);
}

proptest! {
    #[test]
    fn any_cut_of_a_stream_is_equal_and_any_flip_is_found(
        cuts in prop::collection::vec(1_usize..200, 1..40),
        others in prop::collection::vec(1_usize..200, 1..40),
        flip: prop::sample::Index,
    ) {
        let total = cuts.iter().sum::<usize>().min(others.iter().sum());
        let fit = |lengths: &[usize]| {
            let mut left = total;
            let mut cut = Vec::new();
            for length in lengths {
                let length = (*length).min(left);
                left -= length;
                cut.extend((length > 0).then_some(length));
            }
            recut(&cut)
        };
        let (a, b) = (fit(&cuts), fit(&others));
        prop_assert!(compare(&a, &b).equal);

        let (flipped, mut at) = (flip.index(total), 0);
        let flip = |packet: &Packet| {
            let mut bytes = packet.bytes();
            let payload = bytes.len() - HEADERS;
            if (at..at + payload).contains(&flipped) {
                bytes[HEADERS + flipped - at] ^= 0x20;
            }
            at += payload;
            of_bytes(bytes)
        };
        let records = [a.iter().map(flip).collect(), b.iter().map(record).collect()];
        let verdict = compare_records(Limits::default(), &records, LinkType::ETHERNET);
        prop_assert_eq!(only(&verdict).stream_offset, flipped as u64);
    }

    #[test]
    fn any_bytes_equal_themselves(packets: Vec<Vec<u8>>, link in 0_u16..300) {
        let records: Vec<Record> = packets.into_iter().map(of_bytes).collect();
        let records = [records.clone(), records];
        prop_assert!(compare_records(Limits::default(), &records, LinkType(link)).equal);
    }
}

/// The length of the Ethernet, IPv4 and TCP headers without options, in bytes.
const HEADERS: usize = 54;
