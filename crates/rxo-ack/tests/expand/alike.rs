use proptest::collection::vec;
use proptest::prelude::*;
use rxo_ack::{AckNumbers, AckSlot, AckTemplate, AckWriter, IdRule};
use rxo_testkit::naive::{NaiveAck, Reading, another_ack, read};
use rxo_wire::SeqNumber;
use rxo_wire::tcp::Timestamp;

use crate::world::{Kind, kinds, numbers};

/// Returns slots with old contents, which must not show in any ACK.
fn used_memory(slots: usize) -> Vec<AckSlot> {
    let other = Kind { v6: true, tags: 2, ..Kind::PLAIN };
    let mut memory = vec![AckSlot::EMPTY; slots];
    let packet = other.packet(AckNumbers::default(), 9).frame();
    let numbers = vec![AckNumbers::default(); slots - 1];
    AckTemplate::new(packet.borrowed(), other.link(), &numbers, IdRule::Keep)
        .expect("a pure ACK and room")
        .expand(&mut memory)
        .expect("a pure ACK and room");
    memory
}

fn hold_together(kind: &Kind, numbers: &[AckNumbers], ids: IdRule) {
    let first = kind.packet(numbers[0], kind.id).frame();
    let template = AckTemplate::new(first.borrowed(), kind.link(), &numbers[1..], ids)
        .expect("a pure ACK and room");
    assert_eq!(template.count(), numbers.len());
    assert!(template.numbers().map(|numbers| numbers.ack).eq(numbers.iter().map(|n| n.ack)));
    let mut memory = used_memory(numbers.len() + 1);
    let expanded = template.expand(&mut memory).expect("a pure ACK and room");
    assert_eq!(expanded.len(), numbers.len());
    let mut writer = AckWriter::new(first.borrowed(), kind.link(), ids).expect("a pure ACK");
    for (index, (frame, numbers)) in expanded.iter().zip(numbers).enumerate() {
        if index > 0 {
            let mut written = vec![0xaa; first.bytes.len()];
            writer.write(numbers, &mut written);
            assert_eq!(written, frame.bytes, "without a template");
        }
        let step = if ids == IdRule::Increment { index as u16 } else { 0 };
        let built = kind.packet(*numbers, kind.id.wrapping_add(step)).frame();
        assert_eq!(frame, built.borrowed(), "ACK {index} of {kind:?}");
        let new = NaiveAck {
            ack: numbers.ack.0,
            window: numbers.window,
            timestamp: (numbers.timestamp.value, numbers.timestamp.echo),
            id: kind.id.wrapping_add(step),
        };
        let Reading::Segment(seen) = read(&first, kind.link()) else { panic!("{kind:?}") };
        assert_eq!(frame.bytes, another_ack(&first.bytes, &seen, kind.partial, new));
    }
}

#[test]
fn acks_count_on_from_the_first_one_by_one() {
    let ack = |index: u32| AckNumbers {
        ack: SeqNumber(u32::MAX - 2896) + index * 2896,
        window: 500 - index as u16,
        timestamp: Timestamp { value: 77, echo: 1_000 + index },
    };
    let numbers: Vec<_> = (0..32).map(ack).collect();
    for v6 in [false, true] {
        for has_timestamp in [false, true] {
            let kind = Kind { v6, has_timestamp, id: u16::MAX - 3, ..Kind::PLAIN };
            hold_together(&kind, &numbers, IdRule::Increment);
        }
    }
}

#[test]
fn a_template_of_one_is_its_frame() {
    let kind = Kind { has_timestamp: false, padded: true, ..Kind::PLAIN };
    hold_together(&kind, &[AckNumbers::default()], IdRule::Increment);
}

#[test]
fn seeds_stay_seeds() {
    let numbers = [1, 2, 3].map(|ack| AckNumbers { ack: SeqNumber(ack), ..AckNumbers::default() });
    let kind = Kind { partial: true, ..Kind::PLAIN };
    let first = kind.packet(numbers[0], 0).frame();
    let template = AckTemplate::new(first.borrowed(), kind.link(), &numbers[1..], IdRule::Keep)
        .expect("a pure ACK and room");
    let mut memory = [AckSlot::EMPTY; 3];
    let expanded = template.expand(&mut memory).expect("a pure ACK and room");
    let checksums: Vec<_> = expanded.iter().map(|frame| frame.bytes[50..52].to_vec()).collect();
    assert_eq!(checksums, vec![first.bytes[50..52].to_vec(); 3]);
    assert!(expanded.iter().all(|frame| frame.checksum == first.checksum));
}

#[test]
fn a_wrong_checksum_is_wrong_in_every_ack() {
    let numbers = [AckNumbers { ack: SeqNumber(9), ..AckNumbers::default() }; 2];
    let first = Kind::PLAIN.packet(numbers[0], 0).bad_checksum().frame();
    let link = Kind::PLAIN.link();
    let template = AckTemplate::new(first.borrowed(), link, &numbers, IdRule::Keep)
        .expect("a pure ACK and room");
    let mut memory = [AckSlot::EMPTY; 3];
    for frame in template.expand(&mut memory).expect("a pure ACK and room").iter() {
        let Reading::Segment(seen) = read(&frame, link) else { panic!("not a segment") };
        assert!(!seen.checksum_ok);
    }
}

proptest! {
    #[test]
    fn any_template_is_the_frames_built_one_by_one(
        kind in kinds(),
        numbers in vec(numbers(), 1..40),
        counts in any::<bool>(),
    ) {
        hold_together(&kind, &numbers, if counts { IdRule::Increment } else { IdRule::Keep });
    }
}
