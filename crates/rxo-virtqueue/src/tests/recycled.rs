//! `recycle` leaves rings and results as `take_used` and `post` do, for any chains and any device.

use proptest::prelude::*;

use super::pair::{BUFFERS, Features, Pair, all_features, readable, writable};
use crate::{Fit, InvalidUsed, Segment, Used};

/// The numbers of descriptors of the rings.
const SIZES: [u16; 2] = [4, 8];

#[derive(Clone, Copy, Debug)]
enum Op {
    /// The number of segments, and whether the first is for reading.
    Post(u8, bool),
    Recycle,
    Publish,
    /// The device writes a frame of this many bytes, or reads a chain.
    Write(u8),
    Read,
    /// A hostile device writes this byte into the rings.
    Scribble(u16, u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1_u8..4, any::<bool>()).prop_map(|(pieces, reads)| Op::Post(pieces, reads)),
        2 => Just(Op::Post(1, false)),
        6 => Just(Op::Recycle),
        3 => Just(Op::Publish),
        5 => (1_u8..60).prop_map(Op::Write),
        2 => Just(Op::Read),
    ]
}

fn hostile_op() -> impl Strategy<Value = Op> {
    prop_oneof![8 => op(), 1 => (0_u16..300, any::<u8>()).prop_map(|(at, byte)| Op::Scribble(at, byte))]
}

/// The segments of a chain, at an address of its own.
fn segments(token: u32, pieces: u8, reads: bool) -> Vec<Segment> {
    let at = |piece: u8| BUFFERS + u64::from(token % 64) * 0x100 + u64::from(piece) * 0x40;
    let of =
        |piece| if reads && piece == 0 { readable(at(piece), 30) } else { writable(at(piece), 30) };
    (0..pieces).map(of).collect()
}

/// Takes a chain back and posts it again if it is one writable segment: what `recycle` must be equal to.
fn take_and_post(pair: &mut Pair, posted: &[Vec<Segment>]) -> Result<Option<Used>, InvalidUsed> {
    let taken = pair.driver.take_used();
    let (Ok(Some(Used { token, .. })) | Err(InvalidUsed::TooLong { token, .. })) = taken else {
        return taken;
    };
    let segments = &posted[token as usize];
    if matches!(segments[..], [Segment { is_writable: true, .. }]) {
        pair.driver.post(segments, token).unwrap();
    }
    taken
}

fn memory_of(pair: &Pair) -> Vec<u8> {
    let mut bytes = vec![0; 0x400];
    assert!(pair.memory.read(pair.config.descriptors, &mut bytes));
    bytes
}

/// Runs the operations with `recycle`, and with `take_and_post`. After each, both have the same rings.
fn compare(features: Features, size: u16, ops: &[Op]) {
    let [mut recycles, mut oracle] = [(); 2].map(|()| Pair::new(features, size));
    let mut posted = Vec::new();
    for op in ops {
        if let Op::Recycle = op {
            assert_eq!(recycles.driver.recycle(), take_and_post(&mut oracle, &posted));
        } else {
            let token = posted.len() as u32;
            let results = [&mut recycles, &mut oracle].map(|pair| step(pair, *op, token));
            assert_eq!(results[0], results[1]);
            if let Op::Post(pieces, reads) = op {
                posted.push(segments(token, *pieces, *reads));
            }
        }
        assert!(memory_of(&recycles) == memory_of(&oracle), "{features:?}, {op:?}");
        let of = |pair: &Pair| (pair.driver.free(), pair.driver.invalid(), pair.driver.is_broken());
        assert_eq!(of(&recycles), of(&oracle));
    }
}

fn step(pair: &mut Pair, op: Op, token: u32) -> bool {
    match op {
        Op::Post(pieces, reads) => {
            return pair.driver.post(&segments(token, pieces, reads), token).is_ok();
        }
        Op::Publish => {
            pair.driver.publish();
            return pair.driver.needs_notify();
        }
        Op::Write(bytes) => {
            if let Ok(mut writer) = pair.device.reserve(&pair.memory, bytes.into(), Fit::OneChain) {
                writer.write(&vec![bytes; bytes.into()]);
                writer.finish().unwrap();
            }
            pair.device.publish();
        }
        Op::Read => {
            let _taken = pair.device.take(&pair.memory, &mut [0; 100]);
            pair.device.publish();
        }
        Op::Scribble(at, byte) => {
            assert!(pair.memory.write(pair.config.descriptors + u64::from(at), &[byte]));
        }
        Op::Recycle => {}
    }
    false
}

proptest! {
    #[test]
    fn recycling_is_taking_and_posting(ops in prop::collection::vec(op(), 1..120)) {
        for (features, size) in all_features().flat_map(|it| SIZES.map(|size| (it, size))) {
            compare(features, size, &ops);
        }
    }

    #[test]
    fn recycling_is_taking_and_posting_with_a_hostile_device(ops in prop::collection::vec(hostile_op(), 1..60)) {
        for (features, size) in all_features().flat_map(|it| SIZES.map(|size| (it, size))) {
            compare(features, size, &ops);
        }
    }
}
