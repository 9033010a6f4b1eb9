//! The first step: acceptable segments (RFC 9293, section 3.10.7.4), and PAWS (RFC 7323).

use rxo_tcp::Config;
use rxo_wire::TcpFlags;

use crate::dsl::*;

/// The four rows of the table, each with accepted and refused segments.
#[test]
fn the_table_of_acceptable_segments() {
    let answered = |peer: Peer| {
        let mut scene = Scene::established(Config { receive_buffer_bytes: 2_000, ..plain() });
        let answered = !scene.answers(peer).is_empty();
        let readable = scene.tcp.readable_bytes();
        (answered, readable)
    };
    // length 0, window open
    assert_eq!(answered(seg()), (false, 0));
    assert_eq!(answered(seg().seq(2000)), (false, 0));
    // The right edge, where a peer stands that has sent a full window: see the next story.
    assert_eq!(answered(seg().seq(2001)), (false, 0));
    assert_eq!(answered(seg().seq(2002)), (true, 0));
    assert_eq!(answered(seg().seq(0)), (true, 0));
    // length above 0, window open
    assert_eq!(answered(seg().len(10)), (false, 10));
    assert_eq!(answered(seg().seq(0).len(10)), (false, 9));
    assert_eq!(answered(seg().seq(0).len(1)), (true, 0));
    assert_eq!(answered(seg().seq(2001).len(10)), (true, 0));
    // Both ends lie outside, and the middle inside.
    assert_eq!(answered(seg().seq(0).len(2002)), (true, 2000));
}

/// Returns a connection with a window of 2,000 bytes. Its first segment is lost, the rest has arrived, and 10
/// of our bytes are outstanding.
fn full_behind_a_gap() -> Scene {
    let mut scene = Scene::established(Config { receive_buffer_bytes: 2_000, ..plain() });
    scene.sends(10);
    scene.gets(seg().seq(1001).len(1000));
    scene.out();
    scene
}

/// RFC 9293, section 3.10.7.4 (a): a peer that has sent a full window acknowledges with SND.NXT, which is
/// RCV.NXT + RCV.WND here. Linux and BSD accept its ACK; ignoring it would cost a retransmission timeout.
#[test]
fn an_ack_at_the_right_edge_counts() {
    let is_taken = |scene: &Scene| scene.tcp.statistics().snd_una == scene.tcp.statistics().snd_nxt;
    let at_edge = || seg().seq(2001).ack(11);
    let mut scene = full_behind_a_gap();
    assert_eq!(scene.answers(at_edge()), [""; 0]);
    assert!(is_taken(&scene));
    assert_eq!(scene.after(ms(2_000)), [""; 0], "nothing times out");
    // By its record, alone and among others, as a host passes pure ACKs.
    let mut scene = full_behind_a_gap();
    scene.tcp.on_pure_acks(scene.now, &[scene.record(at_edge())]);
    assert!(is_taken(&scene));
    let mut scene = full_behind_a_gap();
    let records = [scene.record(seg().ack(5)), scene.record(at_edge())];
    scene.tcp.on_pure_acks(scene.now, &records);
    assert!(is_taken(&scene));
    // With text or a FIN, which do not fit and are answered.
    for peer in [at_edge().len(10), at_edge().fin()] {
        let mut scene = full_behind_a_gap();
        assert_eq!(scene.answers(peer), [". 11:11 ack 1"]);
        assert!(is_taken(&scene) && !scene.tcp.is_peer_done());
        assert_eq!(scene.tcp.readable_bytes(), 0);
    }
    // With text that begins before the window and ends after it.
    let mut scene = full_behind_a_gap();
    scene.gets(seg().seq(0).ack(11).len(2010));
    assert!(is_taken(&scene));
    assert_eq!(scene.reads(), (1..2001).map(stream_byte).collect::<Vec<_>>());
    // One byte further the segment is outside and ignored.
    let mut scene = full_behind_a_gap();
    assert_eq!(scene.answers(seg().seq(2002).ack(11)), [". 11:11 ack 1"]);
    assert!(!is_taken(&scene));
}

/// RFC 5961, section 3.2 (a): for a reset the right edge is outside the window, which leaves attackers no
/// additional byte.
#[test]
fn a_reset_at_the_right_edge_is_dropped() {
    let mut scene = full_behind_a_gap();
    assert_eq!(scene.answers(seg().seq(2001).flags(TcpFlags::RST)), [""; 0]);
    assert!(!scene.tcp.is_closed());
}

/// RFC 9293, section 3.4 (MUST-66): with a closed window, ACK and RST are processed as well, and an urgent
/// segment has no effect.
#[test]
fn a_closed_window_takes_acks_and_resets() {
    let full = || {
        let mut scene = Scene::established(Config { receive_buffer_bytes: 2_000, ..plain() });
        scene.sends(10);
        scene.gets(seg().len(1000));
        scene.gets(seg().seq(1001).len(1000));
        scene.out();
        assert_eq!(scene.tcp.statistics().rcv_wnd, 0);
        scene
    };
    let mut scene = full();
    // A window probe is answered and its ACK is processed, but its text is not accepted.
    assert_eq!(scene.answers(seg().seq(2001).len(1).ack(11)), [". 11:11 ack 2001"]);
    assert_eq!(scene.tcp.statistics().snd_una, scene.tcp.statistics().snd_nxt);
    let mut scene = full();
    scene.gets(seg().seq(2001).ack(11).flags(TcpFlags::ACK | TcpFlags::URG));
    assert_eq!(scene.tcp.statistics().snd_una, scene.tcp.statistics().snd_nxt);
    // Old text is retransmitted, with more after it than fits: its ACK counts too.
    let mut scene = full();
    assert_eq!(scene.answers(seg().seq(1001).len(1010).ack(11)), [". 11:11 ack 2001"]);
    assert_eq!(scene.tcp.statistics().snd_una, scene.tcp.statistics().snd_nxt);
    let mut scene = full();
    scene.gets(seg().seq(2001).flags(TcpFlags::RST));
    assert!(scene.tcp.is_closed());
}

#[test]
fn what_lies_outside_the_window_is_cut_off() {
    let mut scene = Scene::established(Config { receive_buffer_bytes: 2_000, ..plain() });
    scene.gets(seg().len(500));
    // 100 bytes are old, 600 are new.
    scene.gets(seg().seq(401).len(700));
    assert_eq!(scene.tcp.readable_bytes(), 1100);
    scene.gets(seg().seq(1101).len(1000).fin());
    assert_eq!(scene.tcp.readable_bytes(), 2000);
    let expected: Vec<u8> = (1..2001).map(stream_byte).collect();
    assert_eq!(scene.reads(), expected);
    assert!(!scene.tcp.is_peer_done());
}

fn with_timestamps() -> Scene {
    Scene::established(Config { timestamps: true, ..plain() })
}

/// RFC 7323, section 5.3 (a): a segment with an old timestamp is old, whatever its sequence number.
#[test]
fn an_old_timestamp_is_refused() {
    let mut scene = with_timestamps();
    scene.gets(seg().len(10).ts(50, 0));
    scene.out();
    assert_eq!(scene.answers(seg().seq(11).len(10).ts(49, 0)), [". 1:1 ack 11"]);
    assert_eq!(scene.tcp.readable_bytes(), 10);
    scene.gets(seg().seq(11).len(10).ts(50, 0));
    assert_eq!(scene.tcp.readable_bytes(), 20);
}

/// RFC 7323, section 5.3 (b): the timestamps of resets are not checked. RFC 7323, section 5.5: nor are any
/// after 24 days.
#[test]
fn a_timestamp_does_not_hold_back_a_reset() {
    let mut scene = with_timestamps();
    scene.gets(seg().len(10).ts(50, 0));
    scene.gets(seg().seq(11).flags(TcpFlags::RST).ts(1, 0));
    assert!(scene.tcp.is_closed());

    let mut scene = with_timestamps();
    scene.gets(seg().len(10).ts(50, 0));
    scene.after(ms(24 * 24 * 3600 * 1000));
    scene.gets(seg().seq(11).len(10).ts(1, 0));
    assert_eq!(scene.tcp.readable_bytes(), 20);
}

/// RFC 7323, section 3.2 (c): once timestamps are in use, a segment without one is dropped.
#[test]
fn a_missing_timestamp_is_dropped() {
    let mut scene = with_timestamps();
    assert_eq!(scene.answers(seg().len(10)), [""; 0]);
    assert_eq!(scene.tcp.readable_bytes(), 0);
}

/// Returns the echo in the next acknowledgement, relative to the peer's first timestamp.
fn echo(scene: &mut Scene) -> u32 {
    let sent = scene.tcp.poll_transmit(scene.now).expect("an acknowledgement is owed");
    let options = rxo_tcp::SegmentOptions::read(sent.options.as_slice());
    options.timestamp.expect("it is agreed").echo - PEER_TS
}

/// The echoed timestamp is that of the first segment that was not acknowledged (RFC 7323, section 4.3 (a)).
#[test]
fn the_echo_is_of_the_first_unacknowledged() {
    let mut scene = with_timestamps();
    scene.gets(seg().len(1000).ts(10, 0));
    scene.gets(seg().seq(1001).len(1000).ts(20, 0));
    assert_eq!(echo(&mut scene), 10);
    scene.gets(seg().seq(2001).len(1000).ts(30, 0));
    scene.gets(seg().seq(3001).len(1000).ts(40, 0));
    assert_eq!(echo(&mut scene), 30);
}

/// RFC 7323, section 4.3 (a): the rule also holds after a delayed acknowledgement, and when a third segment
/// arrives with two that are acknowledged.
#[test]
fn the_echo_follows_every_acknowledgement() {
    let mut scene = with_timestamps();
    scene.gets(seg().len(1000).ts(10, 0));
    scene.after(ms(40));
    scene.gets(seg().seq(1001).len(1000).ts(60, 0));
    scene.gets(seg().seq(2001).len(1000).ts(70, 0));
    assert_eq!(echo(&mut scene), 60);

    let mut scene = with_timestamps();
    scene.gets_aggregate((0..3).map(|n| seg().seq(1 + n * 1000).len(1000).ts(10 + n, 0)));
    scene.out();
    scene.gets(seg().seq(3001).len(1000).ts(20, 0));
    assert_eq!(echo(&mut scene), 12);
}

/// RFC 7323, section 4.3 (b, c): a segment out of order does not change the echo; one that fills the gap
/// does.
#[test]
fn a_gap_keeps_the_echo() {
    let mut scene = with_timestamps();
    scene.gets(seg().len(MSS).ts(10, 0));
    scene.gets(seg().seq(1001).len(MSS).ts(11, 0));
    assert_eq!(echo(&mut scene), 10);
    scene.gets(seg().seq(3001).len(MSS).ts(13, 0));
    assert_eq!(echo(&mut scene), 10);
    scene.gets(seg().seq(4001).len(MSS).ts(14, 0));
    assert_eq!(echo(&mut scene), 10);
    scene.gets(seg().seq(2001).len(MSS).ts(15, 0));
    assert_eq!(echo(&mut scene), 15);
}

/// RFC 7323, section 5.5: after a timestamp has expired, the next one is accepted, even if it is smaller.
#[test]
fn a_forgotten_timestamp_has_a_follower() {
    let mut scene = with_timestamps();
    scene.gets(seg().len(MSS).ts(50, 0));
    scene.after(ms(24 * 24 * 3600 * 1000));
    scene.gets(seg().seq(1001).len(MSS).ts(20, 0));
    scene.gets(seg().seq(2001).len(MSS).ts(21, 0));
    assert_eq!(echo(&mut scene), 20);
}

/// RFC 7323, section 5.4: our timestamp clock ticks once per millisecond.
#[test]
fn our_clock_ticks_in_milliseconds() {
    let mut scene = with_timestamps();
    let mut value = || {
        scene.after(ms(1_000));
        scene.gets(seg().seq(0).ts(0, 0));
        let sent = scene.tcp.poll_transmit(scene.now).expect("an answer");
        rxo_tcp::SegmentOptions::read(sent.options.as_slice()).timestamp.expect("agreed").value
    };
    let first = value();
    assert_eq!(value().wrapping_sub(first), 1_000);
}

/// RFC 7323, section 4.3, with RFC 5961, section 5: the timestamp of a segment with an invalid ACK is
/// ignored. Otherwise a forged one would make all later segments old.
#[test]
fn a_wrong_ack_has_no_timestamp() {
    let mut scene = Scene::established(Config { timestamps: true, ..plain() });
    let wrong = seg().len(10).ack(9_999).ts(200_000, 0);
    assert_eq!(scene.answers(wrong), [". 1:1 ack 1"]);
    scene.gets(seg().len(10).ts(1, 0));
    assert_eq!(scene.tcp.readable_bytes(), 10);
}
