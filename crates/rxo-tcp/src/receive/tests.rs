//! Tests of reassembly against a naive oracle, and of the window's edge.

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
    let start = receive.irs + 1 + at;
    if let Some(block) = receive.duplicate_in(start, start + bytes) {
        receive.sack.received_again(block);
    }
    receive.accept(start, text(at, bytes))
}

fn block(receive: &Receive<Vec<u8>>, from: u32, to: u32) -> SackBlock {
    let first = receive.irs + 1;
    SackBlock { start: first + from, end: first + to }
}

fn all_text(receive: &Receive<Vec<u8>>) -> Vec<u8> {
    receive.slices().collect::<Vec<_>>().concat()
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
    assert_eq!(all_text(&receive), expected);
}

/// A peer that sends every other byte can make one gap for each 512 bytes of the window, and no more.
#[test]
fn gaps_are_bounded_by_the_window() {
    let mut receive = receive();
    receive.resize(6 << 20, 16);
    receive.move_edge(receive.nxt);
    let kept = (0..20_000).take_while(|n| put(&mut receive, n * 2 + 1, 1) != Accepted::NoRoom);
    let kept = kept.count();
    assert_eq!(kept, (6 << 20) / 512);
    assert_eq!(receive.waiting.runs().count(), kept);
    // Text that fills a gap needs no free slot: it joins two runs into one.
    for n in (2..200).step_by(2) {
        assert_eq!(put(&mut receive, n, 1), Accepted::OutOfOrder);
    }
    assert_eq!(receive.waiting.runs().count(), kept - 99);
    assert!(matches!(put(&mut receive, 0, 1), Accepted::InOrder { .. }));
    let expected: Vec<u8> = (0..200).map(|n| n as u8).collect();
    assert_eq!(all_text(&receive), expected);
}

/// The block of the last segment comes first (RFC 2018, section 4).
#[test]
fn the_latest_block_is_reported_first() {
    let mut receive = receive();
    for at in [100, 300, 500, 310] {
        put(&mut receive, at, 10);
    }
    let blocks = receive.sack_blocks();
    let expected = [(300, 320), (500, 510), (100, 110)];
    assert_eq!(blocks.as_slice(), expected.map(|(from, to)| block(&receive, from, to)));
}

/// Duplicate text is reported once, in front (RFC 2883, section 4).
#[test]
fn a_duplicate_is_reported_once() {
    let mut receive = receive();
    put(&mut receive, 100, 100);
    put(&mut receive, 120, 30);
    let (whole, part) = (block(&receive, 100, 200), block(&receive, 120, 150));
    assert_eq!(receive.sack_blocks().as_slice(), [part, whole]);
    assert_eq!(receive.sack_blocks().as_slice(), [whole]);
}

/// The duplicate is the first contiguous part that was received before, in order or not (RFC 2883, section 4
/// (d)).
#[test]
fn the_first_part_is_the_duplicate() {
    let mut receive = receive();
    for at in [0, 200, 250, 400] {
        put(&mut receive, at, 50);
    }
    let offered_edge =
        |from, to| receive.duplicate_in(receive.irs + 1 + from, receive.irs + 1 + to);
    assert_eq!(offered_edge(0, 800), Some(block(&receive, 0, 50)));
    assert_eq!(offered_edge(50, 800), Some(block(&receive, 200, 300)));
    assert_eq!(offered_edge(220, 260), Some(block(&receive, 220, 260)));
    assert_eq!(offered_edge(290, 410), Some(block(&receive, 290, 300)));
    assert_eq!(offered_edge(50, 200), None);
    assert_eq!(offered_edge(300, 400), None);
    assert_eq!(offered_edge(450, 900), None);
}

/// Text in order is always accepted; text out of order is dropped only if there are too many gaps.
#[test]
fn only_gaps_are_too_many() {
    let mut receive = receive();
    let kept = (0..20).filter(|n| put(&mut receive, 100 + n * 20, 10) == Accepted::OutOfOrder);
    assert_eq!(kept.count(), 8);
    // Text that fills a gap needs no free slot.
    assert_eq!(put(&mut receive, 110, 10), Accepted::OutOfOrder);
    assert_eq!(receive.waiting.runs().count(), 7);
    for n in 0..100 {
        assert!(matches!(put(&mut receive, n, 1), Accepted::InOrder { .. }));
    }
    assert_eq!(receive.slices().len(), receive.slices().count());
    let expected: Vec<u8> = (0..130).collect();
    assert_eq!(all_text(&receive), expected);
}

/// A full window in segments of one byte, half of them out of order, is kept completely.
#[test]
fn an_offered_window_is_kept_byte_by_byte() {
    let mut receive = receive();
    receive.window_field();
    let half = CAPACITY / 2;
    for at in (1..half).rev() {
        assert_eq!(put(&mut receive, at, 1), Accepted::OutOfOrder);
    }
    assert!(matches!(put(&mut receive, 0, 1), Accepted::InOrder { .. }));
    assert_eq!(receive.ready_bytes(), half as usize);
    for at in half..CAPACITY {
        assert!(matches!(put(&mut receive, at, 1), Accepted::InOrder { .. }));
    }
    assert_eq!(receive.window_field(), 0);
    let expected: Vec<u8> = (0..CAPACITY).map(|n| n as u8).collect();
    assert_eq!(all_text(&receive), expected);
    let mut read = vec![0; CAPACITY as usize + 1];
    assert_eq!(receive.read(&mut read), CAPACITY as usize);
    assert_eq!(read[..CAPACITY as usize], expected);
    assert!(!receive.is_spilling());
}

/// The edge moves in steps of a segment or half the buffer (RFC 9293, section 3.8.6.2.2, MUST-39).
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

/// Rounding moves the edge by less than a unit and never below the exact one. Text that any window field
/// allowed is accepted (RFC 7323, section 2.4).
#[test]
fn a_scaled_edge_stays_near_the_true_one() {
    let mut receive = receive();
    receive.scale = 7;
    for n in 0..60 {
        let field = receive.window_field();
        let advertised_edge = receive.nxt + (u32::from(field) << 7);
        assert!((0..128).contains(&(advertised_edge - receive.edge)));
        assert!(receive.advertised_edge.is_at_or_after(advertised_edge));
        put(&mut receive, n * 13, 13);
        receive.consume(13);
    }
}

/// The length of the stream in the property test; longer than the window, so that the window must open.
const STREAM: u32 = 3_000;

fn tight() -> Receive<Vec<u8>> {
    let config = Config {
        receive_buffer_bytes: 900,
        receive_pieces: 8,
        maximum_segment_size: 100,
        ..Config::default()
    };
    let mut receive = Receive::new(&config);
    receive.start(SeqNumber(u32::MAX - 1_500));
    receive
}

proptest! {
    /// A byte that arrived inside the offered window is kept, unless there were too many gaps, and no other
    /// byte is, whatever the segmentation, the order and the reads. The owner grants memory and takes it back
    /// at any time; the offered edge never moves back.
    #[test]
    fn what_was_offered_is_kept(
        steps in prop::collection::vec(
            (0_u32..900, 1_u32..120, 0_usize..300, any::<bool>(), 1_u32..6_000),
            1..120,
        ),
    ) {
        let mut receive = tight();
        let mut has = vec![false; STREAM as usize * 2];
        let mut consumed = 0_usize;
        for (offset, bytes, reads, is_in_order, capacity) in steps {
            if capacity < 2_000 {
                let (advertised_edge, held) = (receive.advertised_edge, receive.ready_bytes() as u32 + receive.wnd());
                receive.resize(capacity, 8);
                prop_assert!(receive.held_bytes() >= held.max(capacity));
                let field = receive.window_field();
                prop_assert!((receive.nxt + u32::from(field)).is_at_or_after(advertised_edge));
            }
            let nxt = distance(receive.irs + 1, receive.nxt);
            let at = if is_in_order { nxt } else { nxt + offset };
            let bytes = bytes.min(receive.wnd().saturating_sub(at - nxt));
            if at > STREAM || bytes == 0 {
                continue;
            }
            let accepted = put(&mut receive, at, bytes);
            prop_assert!(accepted != Accepted::NoRoom || at > nxt);
            if accepted != Accepted::NoRoom {
                has[at as usize..(at + bytes) as usize].fill(true);
            }
            let buffers = receive.ready.slices().len() + receive.waiting.original_buffers();
            prop_assert!(buffers + PIECES_OF_A_RING <= 8, "{buffers} buffers");
            let nxt = distance(receive.irs + 1, receive.nxt) as usize;
            prop_assert!(has[..nxt].iter().all(|has| *has) && !has[nxt]);
            let waits: u32 = receive.waiting.runs().map(|run| distance(run.start, run.end)).sum();
            prop_assert_eq!(waits as usize, has[nxt..].iter().filter(|has| **has).count());
            let mut text = vec![0; reads];
            let read = receive.read(&mut text);
            let expected: Vec<u8> = (consumed..consumed + read).map(|at| at as u8).collect();
            prop_assert_eq!(&text[..read], expected);
            consumed += read;
            receive.window_field();
        }
        let rest: Vec<u8> = (consumed..consumed + receive.ready_bytes()).map(|at| at as u8).collect();
        prop_assert_eq!(all_text(&receive), rest);
    }

    /// The naive oracle: a byte is available once any segment brought it.
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
