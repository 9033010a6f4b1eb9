//! Loss recovery without SACK: RFC 5681, section 3.2, RFC 6582, RFC 3042.

use crate::dsl::*;

fn ten_outstanding() -> Scene {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.sends(40_000).len(), 10);
    scene.after(ms(10));
    scene
}

/// RFC 3042, section 2 (a): a new segment for each of the first two duplicates. RFC 5681, section
/// 3.2 (a): the third sends the lost one.
#[test]
fn the_third_duplicate_retransmits() {
    let mut scene = ten_outstanding();
    assert_eq!(scene.answers(seg()), [". 10001:11001 ack 1"]);
    assert_eq!(scene.answers(seg()), [". 11001:12001 ack 1"]);
    assert_eq!(scene.answers(seg()), [". 1:1001 ack 1"]);
    assert_eq!(scene.cwnd_segments(), 7);
}

/// RFC 5681, section 2: what has text or another window is no duplicate.
#[test]
fn not_every_repetition_is_a_duplicate() {
    let mut scene = ten_outstanding();
    scene.gets(seg().win(49_000));
    scene.gets(seg().win(48_000));
    scene.gets(seg().win(48_000).len(5));
    scene.gets(seg().win(48_000).seq(6).len(5));
    let sent = scene.out();
    assert!(!sent.iter().any(|line| line.contains(" 1:1001 ")), "{sent:?}");
}

/// RFC 6582, section 3.2 (a, c): a partial acknowledgement names the next loss; a full one ends
/// recovery.
#[test]
fn a_partial_acknowledgement_retransmits_the_next() {
    let mut scene = ten_outstanding();
    (0..3).for_each(|_| drop(scene.answers(seg())));
    assert_eq!(scene.answers(seg().ack(4_001))[0], ". 4001:5001 ack 1");
    scene.gets(seg().ack(12_001));
    let left = scene.out();
    assert!(left.iter().all(|line| !line.contains(" 4001:")), "{left:?}");
    assert!(scene.cwnd_segments() <= 7);
}

/// RFC 5681, section 3.2 (b, c): more duplicates let new segments leave, one for each, once half
/// has left the network.
#[test]
fn duplicates_make_room_for_new_segments() {
    let mut scene = ten_outstanding();
    (0..3).for_each(|_| drop(scene.answers(seg())));
    let sent: Vec<_> = (0..9).flat_map(|_| scene.answers(seg())).collect();
    assert!(!sent.is_empty() && sent[0].starts_with(". 12001:"), "{sent:?}");
}

/// RFC 6582, section 4: after a timeout duplicates of what was sent twice begin no recovery.
#[test]
fn duplicates_after_a_timeout_are_ignored() {
    let mut scene = ten_outstanding();
    scene.after(ms(200));
    let threshold = scene.tcp.statistics().ssthresh;
    (0..5).for_each(|_| drop(scene.answers(seg())));
    assert_eq!(scene.tcp.statistics().ssthresh, threshold);
}
