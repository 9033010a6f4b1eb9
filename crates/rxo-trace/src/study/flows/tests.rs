use rxo_frame::LinkKind;
use rxo_testkit::{Packet, seg};

use super::super::packet_kind::PacketKind;
use super::*;

fn segment(packet: &Packet) -> (Segment, Vec<u8>) {
    let bytes = packet.bytes();
    match PacketKind::read(LinkKind::Ethernet, &bytes) {
        PacketKind::Segment(segment) => (segment, bytes),
        other => panic!("{other:?}"),
    }
}

fn seen(at_ns: u64) -> Sighting {
    Sighting { at_ns, file: 0 }
}

/// Counts the packets of one flow. Returns, for each packet, `true` if it was a pure ACK that could be
/// aggregated.
fn counted(packets: &[Packet]) -> Vec<bool> {
    let mut flows = Flows::new(10);
    let mut count = |packet| {
        let (segment, bytes) = segment(packet);
        let number = flows.find_or_add(&segment, seen(0));
        flows.get_mut(number).unwrap().count(&segment, &bytes, 60, seen(0))
    };
    packets.iter().map(&mut count).collect()
}

#[test]
fn a_record_stays_small() {
    assert!(size_of::<Flow>() <= 176, "{} bytes", size_of::<Flow>());
}

#[test]
fn each_flow_is_found_again_among_many() {
    let mut flows = Flows::new(100_000);
    let packet = |flow: u32| segment(&seg().flow(flow)).0;
    for flow in (0..30_000).chain(0..30_000) {
        assert_eq!(flows.find_or_add(&packet(flow), seen(5)), flow);
    }
    assert_eq!((flows.len(), flows.iter().count()), (30_000, 30_000));
}

/// The flows would share one slot in a table with one of these seeds. An attacker who writes the capture may
/// know the seed in the user's settings.
#[test]
fn a_capture_cannot_aim_at_one_place() {
    const SLOTS: u64 = 8_192;
    for seed in [0, 1] {
        let hasher = FlowHasher::new(seed);
        let keys = (0..4_000_000).map(|host| FlowKey::v4(host, 1, 443, 0));
        let chosen = keys.filter(|key| (hasher.hash(key).0 >> 32).is_multiple_of(SLOTS));
        let mut flows = Flows::new(100_000);
        for key in chosen {
            let segment = Segment { key, ..segment(&seg()).0 };
            flows.find_or_add(&segment, seen(5));
        }
        assert!(flows.len() > 400);
        let mut slots = [0; SLOTS as usize];
        flows.places.iter().for_each(|(tag, _)| slots[*tag as usize % slots.len()] += 1);
        let most = slots.into_iter().max();
        assert!(most < Some(10), "{most:?} of {} flows in one slot", flows.len());
    }
}

#[test]
fn beyond_the_limit_no_flow_is_added_and_those_there_stay() {
    let mut flows = Flows::new(2);
    let packet = |flow: u32| segment(&seg().flow(flow)).0;
    let numbers: Vec<u32> =
        [0, 1, 2, 1, 3, 0].iter().map(|flow| flows.find_or_add(&packet(*flow), seen(0))).collect();
    assert_eq!(numbers, [0, 1, NO_FLOW, 1, NO_FLOW, 0]);
    assert!(flows.get_mut(NO_FLOW).is_none());
}

#[test]
fn the_top_is_by_packets_then_by_age() {
    let mut flows = Flows::new(10);
    for flow in [0, 1, 2, 2, 3, 3] {
        let (segment, bytes) = segment(&seg().flow(flow));
        let number = flows.find_or_add(&segment, seen(0));
        flows.get_mut(number).unwrap().count(&segment, &bytes, 60, seen(0));
    }
    let top: Vec<FlowKey> = flows.top(3).iter().map(|flow| flow.key).collect();
    let expected: Vec<FlowKey> =
        [2, 3, 0].iter().map(|flow| segment(&seg().flow(*flow)).0.key).collect();
    assert_eq!(top, expected);
    assert!(flows.top(0).is_empty());
    assert_eq!(flows.top(99).len(), 4);
}

#[test]
fn pure_acks_that_advance_or_move_the_window_could_be_aggregated() {
    let ack = |number: u32| seg().pure_ack().ack(number);
    assert_eq!(counted(&[ack(1), ack(2), ack(3)]), [false, true, true]);
    assert_eq!(counted(&[ack(1), ack(1)]), [false, false], "a duplicate says something");
    assert_eq!(counted(&[ack(1), ack(1).window(5)]), [false, true]);
    assert_eq!(counted(&[ack(2), ack(1)]), [false, false], "it went back");
    assert_eq!(counted(&[ack(1), seg().ack(2), ack(3)]), [false; 3], "data stands between");
    assert_eq!(counted(&[ack(1), ack(2).sack(&[(5, 6)]), ack(3)]), [false; 3]);
}

#[test]
fn what_was_coalesced_adds_up() {
    let mut flows = Flows::new(10);
    let (segment, bytes) = segment(&seg());
    let number = flows.find_or_add(&segment, seen(7));
    let flow = flows.get_mut(number).unwrap();
    (0..10).for_each(|_| _ = flow.count(&segment, &bytes, 100, seen(9)));
    flow.coalesced(CHOSEN_SLOT, 4);
    flow.coalesced(CHOSEN_SLOT, 3);
    let report = flow.report(5, &[]);
    assert_eq!((report.packets, report.deliveries, report.aggregates), (10, 5, 2));
    assert_eq!((report.aggregated_segments, report.first_ns, report.last_ns), (7, 2, 4));
    assert_eq!(report.bytes, 1_000);
}

#[test]
fn a_flow_names_the_captures_of_its_first_and_last_packet() {
    let mut flows = Flows::new(10);
    let (segment, bytes) = segment(&seg());
    let names = ["a", "b", "c"].map(Into::into);
    for (at_ns, file, expected) in
        [(5, 0, ["a", "a"]), (5, 1, ["a", "b"]), (4, 2, ["c", "b"]), (5, 2, ["c", "c"])]
    {
        let seen = Sighting { at_ns, file };
        let number = flows.find_or_add(&segment, seen);
        let flow = flows.get_mut(number).unwrap();
        flow.count(&segment, &bytes, 60, seen);
        let report = flow.report(0, &names);
        assert_eq!([&*report.first_file, &*report.last_file], expected);
    }
}
