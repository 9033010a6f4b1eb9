//! Templates as one packet: the resulting ACKs are those of the template, and bytes that are not a template
//! result in none.

use proptest::collection::vec;
use proptest::prelude::*;
use rxo_ack::{AckNumbers, MOST_PACKED_NUMBERS, PACKED_NUMBERS_BYTES, expand_packed};
use rxo_frame::{Frame, Gso, GsoKind};

use crate::world::{Kind, kinds, numbers};

const GSO: Gso = Gso::new(GsoKind::AckTemplate, std::num::NonZeroU16::MIN);

fn packed(kind: &Kind, numbers: &[AckNumbers]) -> Frame<Vec<u8>> {
    let mut frame = kind.packet(numbers[0], kind.id).frame();
    frame.gso = Some(GSO);
    frame.bytes.extend(numbers[1..].iter().flat_map(|numbers| numbers.to_packed()));
    frame
}

/// Returns the frames that result from expanding `frame`; `None` if it is not a template.
fn expanded(frame: &Frame<Vec<u8>>, kind: &Kind) -> Option<Vec<Frame<Vec<u8>>>> {
    let mut frames = Vec::new();
    let count = expand_packed(frame.borrowed(), kind.link(), &mut |ack| {
        frames.push(ack.map_bytes(<[u8]>::to_vec));
    });
    assert_eq!(count.unwrap_or(0), frames.len());
    count.map(|_| frames)
}

#[test]
fn what_is_no_template_gives_nothing() {
    let numbers = [AckNumbers::default(); 3];
    let template = packed(&Kind::PLAIN, &numbers);
    assert_eq!(expanded(&template, &Kind::PLAIN).map(|frames| frames.len()), Some(3));
    let mut cut = template.clone();
    cut.bytes.pop();
    let data = Frame { bytes: rxo_testkit::seg().len(100).bytes(), ..template.clone() };
    let noise = Frame { bytes: vec![0xff; 200], ..template };
    for frame in [cut, data, noise] {
        assert_eq!(expanded(&frame, &Kind::PLAIN), None);
    }
}

#[test]
fn the_number_of_acks_is_bounded() {
    for (later, is_expanded) in [(MOST_PACKED_NUMBERS, true), (MOST_PACKED_NUMBERS + 1, false)] {
        let template = packed(&Kind::PLAIN, &vec![AckNumbers::default(); 1 + later]);
        let expanded = expanded(&template, &Kind::PLAIN).map(|frames| frames.len());
        assert_eq!(expanded, is_expanded.then_some(1 + later));
    }
}

proptest! {
    #[test]
    fn a_packed_template_is_the_frames_built_one_by_one(
        kind in kinds(),
        numbers in vec(numbers(), 1..40),
    ) {
        let kind = Kind { padded: false, ..kind };
        let built: Vec<_> = (0_u16..)
            .zip(&numbers)
            .map(|(step, numbers)| kind.packet(*numbers, kind.id.wrapping_add(step)).frame())
            .collect();
        prop_assert_eq!(expanded(&packed(&kind, &numbers), &kind), Some(built));
    }

    #[test]
    fn numbers_survive_packing(numbers in numbers()) {
        prop_assert_eq!(AckNumbers::from_packed(&numbers.to_packed()), numbers);
    }

    /// Other bytes do no harm: a guest may send anything, but at most one ACK results from each set of
    /// numbers, and nothing panics.
    #[test]
    fn other_bytes_do_no_harm(
        kind in kinds(),
        numbers in vec(numbers(), 1..8),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in 0_usize..60,
    ) {
        let mut frame = packed(&kind, &numbers);
        for (at, byte) in changes {
            let at = at.index(frame.bytes.len());
            frame.bytes[at] = byte;
        }
        frame.bytes.truncate(frame.bytes.len().saturating_sub(cut));
        let most = 1 + frame.bytes.len() / PACKED_NUMBERS_BYTES;
        prop_assert!(expanded(&frame, &kind).is_none_or(|frames| frames.len() <= most));
    }
}
