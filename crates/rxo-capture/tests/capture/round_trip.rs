//! Properties: what is written is read again, in any pieces.

use std::io::Cursor;

use proptest::prelude::*;
use rxo_capture::{CaptureWriter, Custom, Direction, Interface, LinkType, Packet, Record};
use rxo_frame::Instant;

use crate::read::{Dribble, Outcome, read_from};

#[derive(Clone, Debug)]
struct Written {
    interface: u32,
    at: u64,
    original_bytes: u32,
    packet: Vec<u8>,
    cut: usize,
    direction: Option<Direction>,
    comments: Vec<String>,
    custom: Vec<(u32, Vec<u8>)>,
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

fn direction() -> impl Strategy<Value = Option<Direction>> {
    prop_oneof![Just(None), Just(Some(Direction::In)), Just(Some(Direction::Out))]
}

prop_compose! {
    fn written()(
        interface in 0..3_u32,
        at in any::<u64>(),
        original_bytes in any::<u32>(),
        packet in bytes(2000),
        cut in 0..2000_usize,
        direction in direction(),
        comments in prop::collection::vec(".{0,20}", 0..3),
        custom in prop::collection::vec((0..3_u32, bytes(300)), 0..3),
    ) -> Written {
        Written { interface, at, original_bytes, packet, cut, direction, comments, custom }
    }
}

fn interface() -> impl Strategy<Value = Interface> {
    let name = prop::option::of("[a-z0-9]{1,15}");
    (any::<u16>(), prop::option::of(1..262_144_u32), name)
        .prop_map(|(link, snap_bytes, name)| Interface { link: LinkType(link), snap_bytes, name })
}

fn write(interfaces: &[Interface], packets: &[Written]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), "property").expect("it fits");
    for interface in interfaces {
        writer.add_interface(interface).expect("it fits");
    }
    for packet in packets {
        let (head, tail) = packet.packet.split_at(packet.cut.min(packet.packet.len()));
        let comments: Vec<&str> = packet.comments.iter().map(String::as_str).collect();
        let custom = packet
            .custom
            .iter()
            .map(|(enterprise, bytes)| Custom { enterprise: *enterprise, bytes });
        let (at, custom) = (Instant::from_nanos(packet.at), custom.collect::<Vec<_>>());
        let Written { interface, original_bytes, direction, .. } = *packet;
        let (pieces, comments, custom) = (&[head, tail][..], &comments[..], &custom[..]);
        let packet = Packet { interface, at, original_bytes, pieces, direction, comments, custom };
        writer.write(&packet).expect("it fits");
    }
    writer.finish().expect("it fits")
}

fn check(record: &Record, written: &Written) {
    assert_eq!(record.bytes.as_ref(), written.packet);
    assert_eq!(record.at.as_nanos(), written.at);
    assert_eq!(record.original_bytes, written.original_bytes);
    assert_eq!(record.interface, written.interface);
    assert_eq!(record.options.direction(), written.direction);
    let comments: Vec<_> = written.comments.iter().map(String::as_bytes).collect();
    assert_eq!(record.options.comments().collect::<Vec<_>>(), comments);
    for enterprise in 0..3 {
        let of_it = written.custom.iter().filter(|(number, _)| *number == enterprise);
        let expected: Vec<_> = of_it.map(|(_, bytes)| &bytes[..]).collect();
        assert_eq!(record.options.custom(enterprise).collect::<Vec<_>>(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_is_written_is_read_in_any_pieces(
        interfaces in prop::collection::vec(interface(), 3),
        packets in prop::collection::vec(written(), 0..20),
        step in 1..3000_usize,
        batch in 1..30_usize,
    ) {
        let file = write(&interfaces, &packets);
        let outcome: Outcome = read_from(Box::new(Dribble(Cursor::new(file), step)), batch);
        assert_eq!(outcome.interfaces, interfaces);
        let records = outcome.sound();
        assert_eq!(records.len(), packets.len());
        records.iter().zip(&packets).for_each(|(record, written)| check(record, written));
    }

    #[test]
    fn any_bytes_behind_a_magic_end_in_records_or_one_line(
        magic in prop::sample::select(vec![
            vec![0xa1, 0xb2, 0xc3, 0xd4], vec![0x4d, 0x3c, 0xb2, 0xa1],
            vec![10, 13, 13, 10, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0],
            vec![0x1f, 0x8b, 8, 0], vec![0x28, 0xb5, 0x2f, 0xfd],
        ]),
        rest in bytes(3000),
    ) {
        let file = [magic, rest].concat();
        let outcome = read_from(Box::new(Cursor::new(file)), 64);
        if outcome.error.is_some() {
            outcome.message();
        }
    }
}
