//! Received text: in order, out of order, duplicate, and beyond the window.

use rxo_tcp::{CallError, Config, Events};
use rxo_wire::TcpFlags;

use crate::dsl::*;

fn stream(from: u32, to: u32) -> Vec<u8> {
    (from..to).map(stream_byte).collect()
}

#[test]
fn text_is_read_in_order() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.tcp.receive(&mut [0; 4]), Err(CallError::NotYet));
    scene.gets(seg().len(10));
    assert!(scene.tcp.take_events().contains(Events::READABLE));
    let mut first = [0; 4];
    assert_eq!(scene.tcp.receive(&mut first), Ok(4));
    assert_eq!(first.as_slice(), stream(1, 5));
    assert_eq!(scene.tcp.readable().next(), Some(stream(5, 11).as_slice()));
    assert_eq!(scene.tcp.consume(100), 6);
}

/// RFC 9293, section 3.10.7.4 (SHLD-31): text out of order is kept. RFC 5681, section 4.2 (a, b): it is
/// acknowledged at once, and so is text that fills a gap.
#[test]
fn text_out_of_order_waits() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.answers(seg().seq(201).len(100)), [". 1:1 ack 1"]);
    assert_eq!(scene.answers(seg().seq(101).len(100)), [". 1:1 ack 1"]);
    assert_eq!(scene.tcp.readable_bytes(), 0);
    // RFC 5681, section 4.2: text that fills a gap is acknowledged at once.
    assert_eq!(scene.answers(seg().len(100)), [". 1:1 ack 301"]);
    assert_eq!(scene.reads(), stream(1, 301));
}

/// RFC 2018, sections 3 (a) and 4 (a, b): the blocks are reported, the latest first.
#[test]
fn gaps_are_reported_by_sack() {
    let mut scene = Scene::established(with_sack());
    assert_eq!(scene.answers(seg().seq(101).len(100)), [". 1:1 ack 1 sack 101-201"]);
    assert_eq!(scene.answers(seg().seq(301).len(100)), [". 1:1 ack 1 sack 301-401,101-201"]);
    assert_eq!(scene.answers(seg().seq(201).len(100)), [". 1:1 ack 1 sack 101-401"]);
    assert_eq!(scene.answers(seg().len(100)), [". 1:1 ack 401"]);
}

/// RFC 2883, section 4 (a, b, c, d): duplicates below and above the ACK number are reported.
#[test]
fn duplicates_are_reported_by_sack() {
    let mut scene = Scene::established(with_sack());
    scene.gets(seg().len(100));
    assert_eq!(scene.answers(seg().len(100)), [". 1:1 ack 101 sack 1-101"]);
    scene.answers(seg().seq(201).len(100));
    let again = scene.answers(seg().seq(201).len(100));
    assert_eq!(again, [". 1:1 ack 101 sack 201-301,201-301"]);
    // Half of it is new.
    assert_eq!(scene.answers(seg().seq(51).len(100)), [". 1:1 ack 151 sack 51-101,201-301"]);
}

/// RFC 9293, section 3.10.7.4, fifth step: a segment without ACK is dropped.
#[test]
fn text_without_ack_is_dropped() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.answers(seg().len(50).flags(TcpFlags::PSH)), [""; 0]);
    assert_eq!(scene.tcp.readable_bytes(), 0);
}

/// Memory is bounded: the text of more segments than buffer slots is copied.
#[test]
fn more_segments_than_buffers_are_kept() {
    let mut scene = Scene::established(Config { receive_pieces: 4, ..plain() });
    for n in 0..6 {
        scene.gets(seg().seq(1 + n).len(1));
    }
    assert_eq!(scene.reads(), stream(1, 7));
    // The segments are acknowledged as usual.
    assert_eq!(scene.after(ms(40)), [". 1:1 ack 7"]);
}

/// RFC 2018, section 4 (c): each block is reported at least three times, until it is acknowledged.
#[test]
fn each_block_is_said_three_times() {
    let mut scene = Scene::established(with_sack());
    let starts: Vec<u32> = (1..=8).map(|n| n * 201).collect();
    let said: Vec<String> =
        starts.iter().flat_map(|start| scene.answers(seg().seq(*start).len(100))).collect();
    for start in &starts[..6] {
        let block = format!("{start}-{}", start + 100);
        let count = said.iter().filter(|line| line.contains(&block)).count();
        assert!(count >= 3, "{block} in {said:?}");
    }
}
