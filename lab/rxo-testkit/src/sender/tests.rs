use rxo_frame::{Instant, LinkKind};

use super::{Incoming, Lasting, Sender};
use crate::naive::{Reading, read};
use crate::{Packet, seg};

fn ack(number: u32) -> Packet {
    seg().pure_ack().ack(number)
}

fn incoming(packet: &Packet) -> Incoming {
    match read(&packet.frame(), LinkKind::Ethernet) {
        Reading::Segment(segment) => Incoming::of_segment(&segment, Instant::ZERO),
        other => panic!("{other:?}"),
    }
}

fn fed(packets: &[Packet]) -> Sender {
    let mut sender = Sender::default();
    packets.iter().for_each(|packet| sender.take(&incoming(packet)));
    sender
}

fn lasting(packets: &[Packet]) -> Lasting {
    fed(packets).lasting
}

#[test]
fn una_advances_and_never_goes_back() {
    let sender = fed(&[ack(0xffff_fff0), ack(20), ack(10)]);
    assert_eq!((sender.lasting.una, sender.acks), (Some(20), 3));
    assert_eq!(sender.lasting.duplicates, 0, "an old ACK is no duplicate");
}

#[test]
fn the_first_ack_is_no_duplicate_and_its_repetitions_are() {
    assert_eq!(lasting(&[ack(5)]).duplicates, 0);
    assert_eq!(lasting(&[ack(5), ack(5), ack(5)]).duplicates, 2);
}

#[test]
fn a_window_update_is_no_duplicate() {
    let lasting = lasting(&[ack(5), ack(5).window(7), ack(5).window(7)]);
    assert_eq!(lasting.duplicates, 1);
    assert_eq!(lasting.window_bytes, 7 << 7);
}

#[test]
fn data_with_the_same_number_is_no_duplicate_but_sets_what_is_one() {
    let lasting = lasting(&[ack(5), seg().ack(5).window(9), ack(5).window(9)]);
    assert_eq!(lasting.duplicates, 1);
}

#[test]
fn a_window_from_an_earlier_segment_is_not_taken() {
    let keep_alive = ack(5).seq(99).window(1);
    assert_eq!(lasting(&[ack(5).window(8), keep_alive]).window_bytes, 8 << 7);
}

#[test]
fn every_advance_gives_a_round_trip() {
    let sender = fed(&[ack(5).ts(1, 40), ack(6).ts(2, 41), ack(6).ts(2, 42), ack(9).ts(3, 43)]);
    let echoes: Vec<_> = sender.round_trips.iter().map(|(_, echo)| *echo).collect();
    assert_eq!(echoes, [41, 43]);
    assert_eq!(sender.lasting.recent, Some(3));
}

#[test]
fn sack_blocks_join_and_leave() {
    let packets = [
        ack(100),
        ack(100).sack(&[(300, 400)]),
        ack(100).sack(&[(400, 500), (300, 400)]),
        ack(100).sack(&[(600, 700)]),
    ];
    assert_eq!(lasting(&packets).scoreboard.ranges, [(300, 500), (600, 700)]);
    let after = [&packets[..], &[ack(450)]].concat();
    assert_eq!(lasting(&after).scoreboard.ranges, [(450, 500), (600, 700)]);
    assert_eq!(lasting(&after).selective, 3);
}

#[test]
fn a_duplicate_segment_is_counted_and_covers_nothing() {
    let below = lasting(&[ack(100), ack(100).sack(&[(50, 80)])]).scoreboard;
    assert_eq!((below.duplicates, below.ranges.len()), (1, 0));
    let inside = lasting(&[ack(100), ack(100).sack(&[(320, 340), (300, 400)])]).scoreboard;
    assert_eq!((inside.duplicates, inside.ranges), (1, vec![(300, 400)]));
}

#[test]
fn marks_are_known_by_their_changes_and_by_bytes() {
    let sender = fed(&[ack(0), ack(10).ece(), ack(30).ece(), ack(35), ack(36).tos(3)]);
    let marks = sender.lasting.marks;
    assert_eq!(marks.changes, [(0, 0), (0x40, 0), (0, 0), (0, 3)]);
    assert_eq!(marks.bytes[&(0x40, 0)], 30);
    assert_eq!(sender.echoes, 2);
}

#[test]
fn a_segment_without_ack_changes_nothing() {
    assert_eq!(fed(&[ack(5), ack(9).no_ack()]), fed(&[ack(5)]));
}

#[test]
fn after_syn_or_rst_everything_is_new() {
    for packet in [ack(9).rst(), ack(9).syn()] {
        let sender = fed(&[ack(5), ack(5), packet, ack(3)]);
        assert_eq!((sender.lasting.una, sender.lasting.duplicates), (Some(3), 0));
    }
}
