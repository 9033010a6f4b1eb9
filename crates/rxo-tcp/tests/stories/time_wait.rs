//! The compact form of TIME-WAIT, kept without its connection (RFC 9293, section 3.10.7.4; RFC 6191).

use rxo_frame::Instant;
use rxo_tcp::{Config, InTimeWait, State, TimeWait};
use rxo_wire::TcpFlags;

use crate::dsl::*;

/// Returns a connection that this side closed first, its compact TIME-WAIT state, and its end.
fn left(config: Config) -> (Scene, TimeWait, Instant) {
    let with_timestamps = config.timestamps;
    let mut scene = Scene::established(config);
    scene.tcp.shutdown().expect("it is open");
    scene.out();
    let last = seg().ack(2).len(3).fin();
    scene.gets(if with_timestamps { last.ts(5, 0) } else { last });
    let now = scene.now;
    assert!(scene.tcp.take_time_wait(now).is_none(), "the last acknowledgement has not left");
    scene.out();
    let (left, until) = scene.tcp.take_time_wait(now).expect("TIME-WAIT");
    assert_eq!(until, now + ms(60_000));
    (scene, left, now)
}

fn with_timestamps() -> Config {
    Config { timestamps: true, ..plain() }
}

/// Returns the reaction to a segment in one word, with the numbers of the answer.
fn heard(scene: &Scene, left: &mut TimeWait, now: Instant, peer: Peer) -> String {
    let mine = scene.tcp.statistics().snd_nxt;
    let theirs = scene.tcp.statistics().rcv_nxt;
    match left.on_segment(now, &scene.segment(peer)) {
        InTimeWait::Ignored => "ignored".to_owned(),
        InTimeWait::Answered { ack, restarts } => {
            assert_eq!((ack.seq, ack.ack, ack.flags), (mine, theirs, TcpFlags::ACK));
            if restarts { "restarted".to_owned() } else { "answered".to_owned() }
        }
        InTimeWait::Reused(_) => "reused".to_owned(),
        InTimeWait::Over => "over".to_owned(),
    }
}

#[test]
fn the_connection_is_closed_and_still_readable() {
    let (mut scene, left, _) = left(plain());
    assert!(size_of_val(&left) <= 24);
    assert!(matches!(scene.tcp.state(), State::Closed(closed) if closed.failure.is_none()));
    assert_eq!((scene.reads().len(), scene.tcp.poll_at()), (3, None));
    assert_eq!(scene.tcp.receive(&mut [0]), Ok(0));
}

#[test]
fn only_time_wait_is_taken() {
    let mut scene = Scene::established(plain());
    let now = scene.now;
    assert!(scene.tcp.take_time_wait(now).is_none());
    scene.tcp.shutdown().unwrap();
    scene.out();
    assert!(scene.tcp.take_time_wait(now).is_none());
}

/// The reaction to each kind of segment, without timestamps. The peer's FIN had sequence number 4.
#[test]
fn every_kind_of_segment_has_its_answer() {
    let rst = |seq| seg().seq(seq).flags(TcpFlags::RST);
    let rows = [
        (seg().seq(1).ack(2).len(3).fin(), "restarted"),
        (seg().seq(4).ack(2).fin(), "restarted"),
        (seg().seq(5).ack(2).fin(), "answered"),
        (seg().seq(900).ack(2).fin(), "answered"),
        (seg().seq(5).ack(2), "ignored"),
        (seg().seq(1).ack(2).len(3), "answered"),
        (seg().seq(5).ack(77), "answered"),
        (seg().seq(900).ack(2), "answered"),
        (rst(5), "over"),
        (rst(6), "ignored"),
        (syn().seq(3), "answered"),
        (syn().seq(500), "reused"),
        (syn().seq(500).ack(2), "answered"),
    ];
    for (row, (peer, expected)) in rows.into_iter().enumerate() {
        let (scene, mut left, now) = left(plain());
        assert_eq!(heard(&scene, &mut left, now, peer), expected, "row {row}");
    }
}

/// With timestamps, the timestamp decides whether a SYN may reuse the pair of sockets (RFC 7323, section 5.3,
/// and RFC 6191, section 2).
#[test]
fn timestamps_decide() {
    let rst = seg().seq(5).flags(TcpFlags::RST);
    let rows = [
        (seg().seq(4).ack(2).fin().ts(5, 0), "restarted"),
        (seg().seq(4).ack(2).fin().ts(4, 0), "answered"),
        (seg().seq(4).ack(2).fin(), "ignored"),
        (seg().seq(5).ack(2).ts(6, 0), "ignored"),
        (rst, "over"),
        (syn().seq(0).ts(6, 0), "reused"),
        (syn().seq(500).ts(4, 0), "answered"),
        (syn().seq(500).ts(5, 0), "reused"),
        (syn().seq(0).ts(5, 0), "answered"),
    ];
    for (row, (peer, expected)) in rows.into_iter().enumerate() {
        let (scene, mut left, now) = left(with_timestamps());
        assert_eq!(heard(&scene, &mut left, now, peer), expected, "row {row}");
    }
}

/// RFC 5961, section 7: segments without text are answered at most twice per second, a repeated FIN always.
#[test]
fn a_flood_is_answered_in_part() {
    let (scene, mut left, now) = left(plain());
    let wrong = || seg().seq(900).ack(2);
    let fin = || seg().seq(4).ack(2).fin();
    let mut says = |at, peer| heard(&scene, &mut left, at, peer);
    assert_eq!(says(now, wrong()), "answered");
    assert_eq!(says(now + ms(499), wrong()), "ignored");
    assert_eq!(says(now + ms(499), fin()), "restarted");
    assert_eq!(says(now + ms(500), wrong()), "answered");
}
