//! Reassembly against a naive oracle, and the window's edge.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use rxo_wire::SeqNumber;

use super::*;

const CAPACITY: u32 = 10_000;

fn receive() -> Receive<Vec<u8>> {
    let config = Config {
        receive_buffer_bytes: CAPACITY,
        receive_pieces: 16,
        maximum_segment_size: 1000,
        ..Config::default()
    };
    let mut receive = Receive::new(&config);
    receive.start(SeqNumber(u32::MAX - 500));
    receive
}

fn text(at: u32, bytes: u32) -> Payload<Vec<u8>> {
    let data: Vec<u8> = (at..at + bytes).map(|n| n as u8).collect();
    Payload::new(data, 0..bytes as usize).unwrap()
}

fn put(receive: &mut Receive<Vec<u8>>, at: u32, bytes: u32) -> Accepted {
    let first = receive.irs + 1;
    receive.accept(first + at, text(at, bytes))
}

#[test]
fn a_gap_that_is_filled_releases_what_waits() {
    let mut receive = receive();
    assert_eq!(put(&mut receive, 100, 50), Accepted::OutOfOrder);
    assert_eq!(put(&mut receive, 200, 50), Accepted::OutOfOrder);
    assert_eq!(put(&mut receive, 0, 100), Accepted::InOrder { beside_a_gap: true });
    assert_eq!(receive.ready_bytes(), 150);
    assert_eq!(put(&mut receive, 150, 50), Accepted::InOrder { beside_a_gap: true });
    assert_eq!(put(&mut receive, 250, 1), Accepted::InOrder { beside_a_gap: false });
    let expected: Vec<u8> = (0..=250).collect();
    assert_eq!(receive.slices().collect::<Vec<_>>().concat(), expected);
}

/// RFC 2018, section 4: the block that the last segment touched comes first.
#[test]
fn the_latest_block_is_reported_first() {
    let mut receive = receive();
    for at in [100, 300, 500, 310] {
        put(&mut receive, at, 10);
    }
    let first = receive.irs + 1;
    let block = |from, to| SackBlock { start: first + from, end: first + to };
    let blocks = receive.sack_blocks();
    assert_eq!(blocks.as_slice(), [block(300, 320), block(500, 510), block(100, 110)]);
}

/// RFC 2883, section 4: what arrived twice is reported once, in front.
#[test]
fn a_duplicate_is_reported_once() {
    let mut receive = receive();
    put(&mut receive, 100, 100);
    put(&mut receive, 120, 30);
    let first = receive.irs + 1;
    let whole = SackBlock { start: first + 100, end: first + 200 };
    let part = SackBlock { start: first + 120, end: first + 150 };
    assert_eq!(receive.sack_blocks().as_slice(), [part, whole]);
    assert_eq!(receive.sack_blocks().as_slice(), [whole]);
}

#[test]
fn no_room_is_not_for_ever() {
    let mut receive = receive();
    let kept = (0..20).filter(|n| put(&mut receive, 100 + n * 20, 10) == Accepted::OutOfOrder);
    assert_eq!(kept.count(), 8);
    // What comes in order has its own half of the places.
    for n in 0..8 {
        assert!(matches!(put(&mut receive, n, 1), Accepted::InOrder { .. }));
    }
    assert_eq!(put(&mut receive, 8, 1), Accepted::NoRoom);
    assert_eq!(receive.consume(8), 8);
    assert!(matches!(put(&mut receive, 8, 1), Accepted::InOrder { .. }));
}

/// RFC 9293, section 3.8.6.2.2 (MUST-39): the edge moves in steps of a segment or half the buffer.
#[test]
fn the_edge_does_not_creep() {
    let mut receive = receive();
    assert_eq!(receive.window_field(), CAPACITY as u16);
    put(&mut receive, 0, 1000);
    assert_eq!(receive.window_field(), 9000);
    receive.consume(999);
    assert_eq!(receive.window_field(), 9000);
    receive.consume(1);
    assert_eq!(receive.window_field(), CAPACITY as u16);
}

/// RFC 7323, section 2.4: rounding moves the edge by less than a unit, and never below the true one;
/// what any field allowed is taken.
#[test]
fn a_scaled_edge_stays_near_the_true_one() {
    let mut receive = receive();
    receive.scale = 7;
    for n in 0..60 {
        let field = receive.window_field();
        let told = receive.nxt + (u32::from(field) << 7);
        assert!((0..128).contains(&(told - receive.edge)));
        assert!(receive.told.is_at_or_after(told));
        put(&mut receive, n * 13, 13);
        receive.consume(13);
    }
}

proptest! {
    /// The naive oracle: a byte is there once any segment brought it.
    #[test]
    fn any_order_gives_the_same_bytes(
        segments in prop::collection::vec((0_u32..200, 1_u32..40), 1..40),
    ) {
        let mut receive = receive();
        let mut has = vec![false; 256];
        let mut consumed = 0_usize;
        for (at, bytes) in segments {
            let nxt = distance(receive.irs + 1, receive.nxt);
            let cut = nxt.saturating_sub(at);
            if cut >= bytes {
                continue;
            }
            let accepted = put(&mut receive, at + cut, bytes - cut);
            if accepted != Accepted::NoRoom {
                has[(at + cut) as usize..(at + bytes) as usize].fill(true);
            }
            for slice in receive.slices().map(<[u8]>::to_vec).collect::<Vec<_>>() {
                for byte in slice {
                    prop_assert_eq!(byte, consumed as u8);
                    consumed += 1;
                }
            }
            receive.consume(usize::MAX);
            prop_assert!(has[..consumed].iter().all(|has| *has));
        }
        let waiting: u32 = receive.waiting.runs().map(|run| distance(run.start, run.end)).sum();
        let missing = has[consumed..].iter().filter(|has| **has).count();
        prop_assert_eq!(waiting as usize, missing);
    }
}
