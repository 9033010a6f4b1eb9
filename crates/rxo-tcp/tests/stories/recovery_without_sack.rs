//! Loss recovery without SACK: RFC 5681, section 3.2, RFC 6582, RFC 3042.

use rxo_tcp::Config;

use crate::dsl::*;

fn ten_outstanding() -> Scene {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.sends(40_000).len(), 10);
    scene.after(ms(10));
    scene
}

/// RFC 3042, section 2 (a): a new segment leaves for each of the first two duplicates. RFC 5681, section 3.2
/// (a): the third retransmits the lost segment.
#[test]
fn the_third_duplicate_retransmits() {
    let mut scene = ten_outstanding();
    assert_eq!(scene.answers(seg()), [". 10001:11001 ack 1"]);
    assert_eq!(scene.answers(seg()), [". 11001:12001 ack 1"]);
    assert_eq!(scene.answers(seg()), [". 1:1001 ack 1"]);
    assert_eq!(scene.cwnd_segments(), 7);
}

/// RFC 5681, section 2: an ACK with text or another window is no duplicate.
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

/// RFC 5681, section 2: an ACK with a FIN, or without outstanding data, is no duplicate.
#[test]
fn a_fin_or_an_idle_ack_is_no_duplicate() {
    let mut scene = ten_outstanding();
    scene.answers(seg());
    scene.answers(seg());
    let sent = scene.answers(seg().fin());
    assert!(!sent.iter().any(|line| line.contains(" 1:1001 ")), "{sent:?}");

    let mut scene = Scene::established(plain());
    (0..3).for_each(|_| assert_eq!(scene.answers(seg()), [""; 0]));
    assert_eq!(scene.sends(40_000).len(), 10);
    assert_eq!(scene.answers(seg()), [". 10001:11001 ack 1"], "it is the first duplicate");
    assert_eq!(scene.tcp.statistics().recovery.lost, 0);
}

/// RFC 6582, section 3.2 (a, c): a partial acknowledgement shows the next loss; a full one ends recovery.
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

/// RFC 5681, section 3.2 (b, c): further duplicates let one new segment leave each, once half of the flight
/// has left the network.
#[test]
fn duplicates_make_room_for_new_segments() {
    let mut scene = ten_outstanding();
    (0..3).for_each(|_| drop(scene.answers(seg())));
    // The window is the threshold, 7, plus 3; twelve segments are outstanding, so the sixth duplicate lets
    // the first one leave.
    let sent: Vec<Vec<String>> = (0..9).map(|_| scene.answers(seg())).collect();
    let counts: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(counts, [0, 0, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(sent[2], [". 12001:13001 ack 1"]);
}

/// RFC 6582, section 4: after a timeout, duplicates caused by retransmitted data start no recovery.
#[test]
fn duplicates_after_a_timeout_are_ignored() {
    let mut scene = ten_outstanding();
    scene.after(ms(200));
    let threshold = scene.tcp.statistics().ssthresh;
    (0..5).for_each(|_| drop(scene.answers(seg())));
    assert_eq!(scene.tcp.statistics().ssthresh, threshold);
}

/// RFC 3042, section 2 (b): duplicates do not open the peer's window.
#[test]
fn limited_transmit_keeps_to_the_peers_window() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().win(10_500));
    assert_eq!(scene.sends(40_000).len(), 10);
    assert_eq!(scene.answers(seg().win(10_500)), [""; 0]);
    assert_eq!(scene.answers(seg().win(10_500)), [""; 0]);
}

/// RFC 3042, section 2 (c, e): at most two segments leave beyond the window, and the window itself does not
/// change.
#[test]
fn limited_transmit_is_two_segments() {
    let mut scene = ten_outstanding();
    scene.gets(seg());
    scene.gets(seg());
    assert_eq!(scene.out().len(), 2);
    assert_eq!(scene.cwnd_segments(), 10);
}

/// RFC 6582, section 3.2 (b): a partial acknowledgement subtracts the covered bytes from the credit of the
/// duplicates, except for one segment. One retransmission and at most one new segment leave.
#[test]
fn a_partial_acknowledgement_deflates() {
    let mut scene = ten_outstanding();
    (0..9).for_each(|_| drop(scene.answers(seg())));
    let sent = scene.answers(seg().ack(4_001));
    assert_eq!(sent[0], ". 4001:5001 ack 1");
    assert!(sent.len() <= 2, "{sent:?}");

    // With one segment at a time, each subtracts a segment from the credit and returns it, so that one new
    // segment leaves for each, in addition to the retransmission.
    let mut scene = ten_outstanding();
    (0..9).for_each(|_| drop(scene.answers(seg())));
    for segment in 1..4 {
        let sent = scene.answers(seg().ack(1 + segment * MSS));
        assert_eq!(sent.len(), 2, "{sent:?}");
        assert_eq!(sent[0], format!(". {0}:{1} ack 1", 1 + segment * MSS, 1 + (segment + 1) * MSS));
    }
}

/// RFC 6582, section 3.2 (d): a full acknowledgement lets two segments leave, not a whole window.
#[test]
fn the_end_of_recovery_is_not_a_flood() {
    let mut scene = ten_outstanding();
    (0..3).for_each(|_| drop(scene.answers(seg())));
    let sent = scene.answers(seg().ack(12_001));
    assert!((1..=2).contains(&sent.len()), "{sent:?}");
    assert_eq!(scene.tcp.statistics().ssthresh, 7_000);
}

/// RFC 6582, section 3.2 (e): the first partial acknowledgement restarts the timer, later ones do not. With
/// many losses the timeout ends recovery.
#[test]
fn the_first_partial_acknowledgement_restarts_the_timer() {
    let mut scene = ten_outstanding();
    (0..3).for_each(|_| drop(scene.answers(seg())));
    scene.after(ms(150));
    scene.gets(seg().ack(2_001));
    let rto = scene.tcp.statistics().rto;
    assert_eq!(scene.after(rto - ms(20)), [". 2001:3001 ack 1"]);
    assert_eq!(scene.answers(seg().ack(3_001)), [". 3001:4001 ack 1"]);
    assert_eq!(scene.after(ms(19)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 3001:4001 ack 1"]);
    assert_eq!(scene.cwnd_segments(), 1);
}

/// RFC 3522, section 3.2: a timeout during recovery is never treated as spurious. The acknowledgement of that
/// recovery's retransmission echoes an older timestamp, although the data after it is lost.
#[test]
fn a_timeout_that_ends_a_recovery_is_not_forgiven() {
    let mut scene = Scene::established(Config { timestamps: true, ..plain() });
    assert_eq!(scene.sends(40_000).len(), 10);
    let mss = scene.tcp.statistics().mss;
    scene.after(ms(10));
    (0..3).for_each(|_| drop(scene.answers(seg().ts(1, 10))));
    scene.after(ms(10));
    // The first segment is retransmitted 20 ms after the SYN; its ACK causes the second retransmission, at 30
    // ms.
    assert_eq!(scene.answers(seg().ack(1 + mss).ts(2, 20)).len(), 1);
    let timed_out = scene.after(scene.tcp.statistics().rto);
    assert_eq!(timed_out, [format!(". {}:{} ack 1", 1 + mss, 1 + 2 * mss)]);
    let next = scene.answers(seg().ack(1 + 2 * mss).ts(3, 30));
    assert!(next[0].starts_with(&format!(". {}:", 1 + 2 * mss)), "{next:?}");
    assert!(scene.cwnd_segments() <= 2);
}
