//! The content of each acknowledgement of an aggregate: the content that it would have if sent at once.

use rxo_tcp::{AckPolicy, Config, Ecn, SegmentOptions};

use crate::dsl::*;

/// Returns ACK, window and TSecr of everything that leaves, including later acknowledgements.
fn said(scene: &mut Scene) -> Vec<(u32, u16, u32)> {
    let mut said = Vec::new();
    while let Some(transmit) = scene.tcp.poll_transmit(scene.now) {
        for one in core::iter::once(transmit).chain(transmit.later()) {
            let timestamp = SegmentOptions::read(one.options.as_slice()).timestamp;
            let echo = timestamp.map_or(0, |timestamp| timestamp.echo.wrapping_sub(PEER_TS));
            said.push(((one.ack - PEER_ISS) as u32, one.window, echo));
        }
    }
    said
}

fn with_timestamps() -> Config {
    Config { timestamps: true, ..plain() }
}

fn eight() -> impl Iterator<Item = Peer> {
    (0..8).map(|n| seg().seq(1 + n * MSS).len(MSS).ts((n + 1) * 10, 0))
}

/// RFC 7323, section 4.3 (a): each acknowledgement echoes the first segment that it covers.
#[test]
fn each_echoes_the_first_segment_it_covers() {
    let expected = [(2001, 58_000, 10), (4001, 56_000, 30), (6001, 54_000, 50), (8001, 52_000, 70)];
    let mut scene = Scene::established(with_timestamps());
    scene.gets_aggregate(eight());
    assert_eq!(said(&mut scene), expected);
    let mut scene = Scene::established(with_timestamps());
    scene.gets_run(eight());
    assert_eq!(said(&mut scene), expected);
    let mut scene = Scene::established(with_timestamps());
    let mut alone = Vec::new();
    for peer in eight() {
        scene.gets(peer);
        alone.extend(said(&mut scene));
    }
    assert_eq!(alone, expected);
}

/// RFC 7323, section 4.3 (a): a single acknowledgement of all segments echoes the first.
#[test]
fn a_stretch_ack_echoes_the_first_of_all() {
    let config = Config { acks: AckPolicy::OneForATurn, ..with_timestamps() };
    let mut scene = Scene::established(config);
    scene.gets_aggregate(eight());
    assert_eq!(said(&mut scene), [(8001, 52_000, 10)]);
}

/// If the only acknowledgement of a poll is lost, the peer probes with one full segment after two or more
/// round trips, and waits. A peer that sends less than a segment has nothing more to send, and may wait for
/// an answer with text.
#[test]
fn a_whole_segment_alone_is_acknowledged_after_two_round_trips() {
    for (bytes, delay) in [(MSS, 10), (MSS - 1, 40)] {
        let config = Config { acks: AckPolicy::OneForATurn, ..with_timestamps() };
        let mut scene = Scene::established(config);
        scene.gets_aggregate((0..2).map(|n| seg().seq(1 + n * MSS).len(MSS).ts(10, 0)));
        // The time is ten milliseconds after the SYN.
        assert_eq!(scene.out(), [". 1:1 ack 2001"]);
        scene.after(ms(5));
        scene.gets(seg().seq(2001).len(bytes).ts(11, 10));
        assert_eq!(scene.after(ms(delay - 1)), [""; 0]);
        assert_eq!(scene.after(ms(1)), [format!(". 1:1 ack {}", 2001 + bytes)]);
    }
}

/// RFC 3168, section 6.1.3: a mark is echoed starting with its segment, not before.
#[test]
fn a_mark_is_echoed_from_its_segment_on() {
    let mut scene = Scene::established(Config { ecn: true, ..plain() });
    let full = |n| seg().seq(1 + n * MSS).len(MSS);
    let marked = |n| full(n).ecn(Ecn::Congestion);
    scene.gets_aggregate([full(0), full(1), marked(2), full(3)]);
    assert_eq!(scene.out(), [". 1:1 ack 2001", "E. 1:1 ack 4001"]);
}

/// RFC 5681, section 2: a duplicate has the window of the ACK that it repeats, even if text was read since.
#[test]
fn a_duplicate_keeps_the_window() {
    let mut scene = Scene::established(plain());
    scene.gets_aggregate((0..4).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    assert_eq!(said(&mut scene), [(2001, 58_000, 0), (4001, 56_000, 0)]);
    scene.reads();
    scene.gets_aggregate((5..7).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    assert_eq!(said(&mut scene), [(4001, 56_000, 0); 2]);
    // An acknowledgement of more text reports the free space.
    scene.gets(seg().seq(4001).len(MSS));
    assert_eq!(said(&mut scene), [(7001, 57_000, 0)]);
}

/// Text read before an acknowledgement has left opens the window in it: one segment, not two.
#[test]
fn an_acknowledgement_that_has_not_left_says_what_was_read() {
    let mut scene = Scene::established(plain());
    scene.gets_aggregate((0..20).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    scene.reads();
    let said = said(&mut scene);
    assert_eq!((said.len(), said[8], said[9]), (10, (18_001, 42_000, 0), (20_001, 60_000, 0)));
}
