use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::{Frame, Instant, Pool};

fn read<B: AsRef<[u8]>>(chain: &Chain<B>) -> Vec<u8> {
    chain.slices().collect::<Vec<_>>().concat()
}

#[test]
fn a_full_chain_gives_the_buffer_back() {
    let mut chain = Chain::with_limit(1);
    chain.push(b"first".as_slice(), 0..5).unwrap();
    assert_eq!(chain.push(b"second", 0..6), Err(ChainFull(b"second".as_slice())));
    assert_eq!((read(&chain).as_slice(), chain.room_pieces()), (b"first".as_slice(), 0));
}

#[test]
fn an_empty_payload_takes_no_room() {
    let mut chain = Chain::with_limit(0);
    assert_eq!(chain.push(b"header", 6..6), Ok(()));
    assert!(chain.is_empty());
}

#[test]
fn consumed_buffers_go_back_to_their_pool() {
    let pool = Pool::new(2, 10);
    let mut chain = Chain::with_limit(2);
    for _ in 0..2 {
        chain.push(pool.take().unwrap(), 4..10).unwrap();
    }
    assert_eq!(chain.advance(5), 5);
    assert_eq!(pool.available(), 0, "a byte of the first is left");
    assert_eq!(chain.advance(1), 1);
    assert_eq!((pool.available(), chain.len_bytes()), (1, 6));
    assert_eq!(chain.advance(usize::MAX), 6, "no more than there is");
    assert_eq!((pool.available(), chain.room_pieces()), (2, 2));
}

#[test]
#[should_panic(expected = "out of range")]
fn a_range_outside_its_buffer_is_refused() {
    let _ = Chain::with_limit(1).push(b"four", 2..5);
}

#[derive(Clone, Debug)]
enum Step {
    Push(Vec<u8>, usize, usize),
    /// Appends a number of buffers with the same bytes, as far as capacity allows.
    Extend(Vec<u8>, usize),
    Advance(usize),
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let push = (proptest::collection::vec(any::<u8>(), 0..40), 0..20_usize, 0..20_usize);
    let extend = (proptest::collection::vec(any::<u8>(), 4..20), 0..9_usize);
    prop_oneof![
        push.prop_map(|(bytes, skip, cut)| Step::Push(bytes, skip, cut)),
        extend.prop_map(|(bytes, count)| Step::Extend(bytes, count)),
        (0..60_usize).prop_map(Step::Advance),
        (0..60_usize).prop_map(Step::Read),
    ]
}

proptest! {
    #[test]
    fn it_reads_as_plain_bytes_do(steps in proptest::collection::vec(step(), 0..60)) {
        const CAPACITY: usize = 6;
        let mut chain = Chain::with_limit(CAPACITY);
        let mut model = VecDeque::new();
        for step in steps {
            match step {
                Step::Push(bytes, skip, cut) => {
                    let start = skip.min(bytes.len());
                    let end = bytes.len().saturating_sub(cut).max(start);
                    let payload = bytes[start..end].to_vec();
                    let had_room = chain.room_pieces() > 0 || payload.is_empty();
                    prop_assert_eq!(chain.push(bytes, start..end).is_ok(), had_room);
                    if had_room {
                        model.extend(payload);
                    }
                }
                Step::Extend(bytes, count) => {
                    let (fitting, end) = (count.min(chain.room_pieces()), bytes.len() - 1);
                    let frame = Frame::new(bytes.clone(), Instant::ZERO);
                    let mut frames = std::vec![frame; count + 1].into_iter();
                    prop_assert_eq!(chain.extend_known(&mut frames, count, 2..end), fitting);
                    prop_assert_eq!(frames.len(), count + 1 - fitting, "no buffer is lost");
                    (0..fitting).for_each(|_| model.extend(&bytes[2..end]));
                }
                Step::Advance(bytes) => {
                    let some = bytes.min(model.len());
                    prop_assert_eq!(chain.advance(bytes), some);
                    model.drain(..some);
                }
                Step::Read(bytes) => {
                    let mut to = vec![0; bytes];
                    let some = chain.read(&mut to);
                    prop_assert_eq!(some, bytes.min(model.len()));
                    prop_assert!(to.iter().take(some).eq(model.drain(..some).collect::<Vec<_>>().iter()));
                }
            }
            prop_assert_eq!(chain.len_bytes(), model.len());
            prop_assert_eq!(chain.is_empty(), model.is_empty());
            prop_assert!(chain.slices().all(|slice| !slice.is_empty()));
            prop_assert_eq!(chain.slices().len(), CAPACITY - chain.room_pieces());
            prop_assert_eq!(&read(&chain), model.make_contiguous());
        }
    }
}

#[test]
fn exchanged_pieces_read_the_same() {
    let mut chain = Chain::with_limit(3);
    chain.push(b"<hello >".to_vec(), 1..7).unwrap();
    chain.push(b"<world>".to_vec(), 1..6).unwrap();
    chain.advance(2);
    let mut copies = 0;
    chain.exchange(|_, bytes| {
        copies += 1;
        Some(bytes.to_vec())
    });
    assert_eq!((copies, chain.len_bytes()), (2, 9));
    assert_eq!(chain.slices().collect::<Vec<_>>().concat(), b"llo world");
    chain.exchange(|old, _| (old == b"world").then(|| b"earth".to_vec()));
    chain.exchange(|old, _| (old != b"earth").then(|| b"too short".to_vec()));
    assert_eq!(chain.slices().collect::<Vec<_>>().concat(), b"llo earth");
}
