//! The acknowledgements that leave, and their timing (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2).

use rxo_tcp::{AckPolicy, Config};

use crate::dsl::*;

/// RFC 9293, section 3.8.6.3 (SHLD-19): every second full segment is acknowledged.
#[test]
fn every_second_full_segment_is_acknowledged() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.answers(seg().len(MSS)), [""; 0]);
    assert_eq!(scene.answers(seg().seq(1001).len(MSS)), [". 1:1 ack 2001"]);
    assert_eq!(scene.answers(seg().seq(2001).len(MSS)), [""; 0]);
    assert_eq!(scene.answers(seg().seq(3001).len(MSS)), [". 1:1 ack 4001"]);
}

/// RFC 9293, section 3.8.6.3 (SHLD-18, MUST-40): a single segment is acknowledged late, and within
/// half a second.
#[test]
fn one_segment_is_acknowledged_in_time() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(MSS));
    assert_eq!(scene.after(ms(39)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 1:1 ack 1001"]);
    assert_eq!(scene.tcp.poll_at(), None);
}

#[test]
fn an_acknowledgement_rides_along_with_text() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(MSS));
    assert_eq!(scene.sends(5), ["P. 1:6 ack 1001"]);
    assert_eq!(scene.after(ms(100)), [""; 0]);
}

/// Menon 2008, section 3.4: an aggregate causes the acknowledgements of its original segments. RFC 9293,
/// section 3.10.7.4 (MUST-59): none leaves before the whole aggregate is processed.
#[test]
fn an_aggregate_owes_an_ack_for_each_second_segment() {
    let mut scene = Scene::established(plain());
    scene.gets_aggregate((0..7).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    assert_eq!(scene.out(), [". 1:1 ack 2001", ". 1:1 ack 4001", ". 1:1 ack 6001"]);
    assert_eq!(scene.after(ms(40)), [". 1:1 ack 7001"]);
}

/// Menon 2008, section 3.4: aggregates that arrive one after the other cause the acknowledgements of their
/// original segments, however many arrive before the owner sends.
#[test]
fn many_aggregates_owe_an_ack_for_each_second_segment() {
    let buffers = Config { receive_buffer_bytes: 1 << 20, window_scaling: true, ..plain() };
    let mut scene = Scene::established(buffers);
    let segments: Vec<_> = (0..1_024).map(|n| seg().seq(1 + n * MSS).len(MSS)).collect();
    segments.chunks(64).for_each(|aggregate| scene.gets_run(aggregate.to_vec()));
    let expected: Vec<_> = (1..=512).map(|n| format!(". 1:1 ack {}", 1 + 2 * n * MSS)).collect();
    assert_eq!(scene.out(), expected);
}

/// Menon 2008, section 4: the acknowledgements leave as one template, each with the same window edge.
#[test]
fn acks_leave_as_one_template() {
    let mut scene = Scene::established(plain());
    scene.gets_aggregate((0..6).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    let template = scene.tcp.poll_transmit(scene.now).unwrap();
    let first = (template.ack - PEER_ISS, template.window);
    let later: Vec<_> =
        template.later_acks.iter().map(|ack| (ack.ack - PEER_ISS, ack.window)).collect();
    assert_eq!(first, (2001, 58_000));
    assert_eq!(later, [(4001, 56_000), (6001, 54_000)]);
    assert!(scene.tcp.poll_transmit(scene.now).is_none());
}

/// RFC 9293, section 3.10.7.4 (MUST-58): with this setting one acknowledgement covers an aggregate. The
/// default sends more, because a sender that counts acknowledgements must not be slowed (Menon 2008, section
/// 3.4), and sends them as one template.
#[test]
fn the_switch_makes_one_ack_of_an_aggregate() {
    let config = Config { acks: AckPolicy::OneForATurn, ..plain() };
    let mut scene = Scene::established(config);
    scene.gets_aggregate((0..7).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    assert_eq!(scene.out(), [". 1:1 ack 6001"]);
}

/// With one acknowledgement for each turn, some acknowledgements may wait and others may not (RFC 9293,
/// section 3.8.6.3; RFC 5681, section 4.2).
#[test]
fn one_ack_for_a_turn_leaves_at_once_or_within_half_a_second() {
    let config = Config { acks: AckPolicy::OneForATurn, ..plain() };
    let now = |segments: &[Peer], acks: &[&str]| {
        let mut scene = Scene::established(config.clone());
        scene.gets_aggregate(segments.to_vec());
        assert_eq!(scene.out(), acks);
        scene
    };
    let full = |n: u32| seg().seq(1 + n * MSS).len(MSS);
    // At once: the second full segment, however many come with it, text behind a gap, a filled gap, the FIN.
    now(&[full(0), full(1)], &[". 1:1 ack 2001"]);
    now(&[full(0), full(1), full(2), full(3)], &[". 1:1 ack 4001"]);
    now(&[full(1)], &[". 1:1 ack 1"]);
    now(&[full(0).fin()], &[". 1:1 ack 1002"]);
    assert_eq!(now(&[full(1)], &[". 1:1 ack 1"]).answers(full(0)), [". 1:1 ack 2001"]);
    // Later: a segment alone, and an odd one behind others.
    for (segments, acks, rest) in [
        (&[full(0)][..], &[][..], ". 1:1 ack 1001"),
        (&[full(0), full(1), full(2)], &[". 1:1 ack 2001"], ". 1:1 ack 3001"),
    ] {
        let mut scene = now(segments, acks);
        let at = scene.tcp.poll_at().expect("a delayed acknowledgement");
        assert!(at.since(scene.now) <= ms(500));
        assert_eq!(scene.after(at.since(scene.now)), [rest]);
    }
}

/// After a gap, a single acknowledgement could be lost and the peer would learn nothing. Therefore the one
/// that reports the filled gap leaves in addition to the last.
#[test]
fn a_filled_gap_is_told_beside_what_comes_after_it() {
    let config = Config { acks: AckPolicy::OneForATurn, ..plain() };
    let mut scene = Scene::established(config);
    scene.gets_aggregate((1..4).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    scene.out();
    let rest = [0, 4, 5, 6, 7, 8, 9].map(|n| seg().seq(1 + n * MSS).len(MSS));
    scene.gets_aggregate(rest);
    assert_eq!(scene.out(), [". 1:1 ack 4001", ". 1:1 ack 10001"]);
}

/// Menon 2008, section 3.6: the peer counts duplicates, so each of them leaves, in order.
#[test]
fn an_aggregate_out_of_order_owes_one_for_each() {
    let mut scene = Scene::established(plain());
    scene.gets_aggregate((0..4).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    scene.gets_aggregate((5..8).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    let plain = [". 1:1 ack 2001", ". 1:1 ack 4001"];
    assert_eq!(scene.out(), [&plain[..], &[". 1:1 ack 4001"; 3]].concat());
}

/// RFC 9293, section 3.8.6.1: a window probe is answered at once.
#[test]
fn old_text_is_answered_at_once() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(10));
    assert_eq!(scene.answers(seg().len(10)), [". 1:1 ack 11"]);
}

/// RFC 5681, section 4.2 (c): there are never more acknowledgements than segments, of any kind.
#[test]
fn no_more_acks_leave_than_segments_came() {
    let mut scene = Scene::established(with_sack());
    for turn in 0_u32..500 {
        let (seq, len) = (1 + turn * 613 % 20_000, turn * 131 % 1_000);
        let answers = scene.answers(seg().seq(seq).len(len));
        assert!(answers.len() <= 1, "{answers:?} for {seq}+{len}");
    }
    let many = (0_u32..500).map(|turn| seg().seq(1 + turn * 211 % 40_000).len(turn * 61 % 900));
    scene.gets_aggregate(many);
    assert!(scene.out().len() <= 500);
}

/// RFC 2018, section 4: a segment with text also carries SACK blocks if there is space.
#[test]
fn text_says_what_is_held() {
    let mut scene = Scene::established(with_sack());
    scene.answers(seg().seq(1_001).len(500));
    assert_eq!(scene.sends(500), ["P. 1:501 ack 1 sack 1001-1501"]);
    scene.gets(seg().ack(501));
    // There is no space beside a full segment, and eight bytes are too few for a block.
    assert_eq!(scene.sends(1_000), ["P. 501:1501 ack 1"]);
    scene.gets(seg().ack(1_501));
    assert_eq!(scene.sends(992), ["P. 1501:2493 ack 1"]);
    scene.gets(seg().ack(2_493));
    scene.gets(seg().len(1_000));
    scene.out();
    assert_eq!(scene.sends(500), ["P. 2493:2993 ack 1501"]);
}

/// RFC 5681, section 4.2 lets a receiver acknowledge more often. With `quick_acks` the first segments are
/// acknowledged at once, so that the peer's slow start is not delayed.
#[test]
fn a_new_connection_acknowledges_at_once() {
    let mut scene = Scene::established(Config { quick_acks: 2, ..plain() });
    assert_eq!(scene.answers(seg().len(MSS)), [". 1:1 ack 1001"]);
    assert_eq!(scene.answers(seg().seq(1001).len(10)), [". 1:1 ack 1011"]);
    assert_eq!(scene.answers(seg().seq(1011).len(10)), [""; 0]);
    assert_eq!(scene.after(ms(40)), [". 1:1 ack 1021"]);
}
