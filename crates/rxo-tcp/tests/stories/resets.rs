//! RST, and attacks by strangers (RFC 9293, section 3.10.7; RFC 5961).

use rxo_tcp::{CallError, Config, Events, Failure, Reset, SegmentOptions, State};
use rxo_wire::TcpFlags;

use crate::dsl::*;

fn rst() -> Peer {
    seg().flags(TcpFlags::RST)
}

/// RFC 5961, section 3.2 (b): a reset at exactly RCV.NXT counts.
#[test]
fn a_reset_that_fits_ends_the_connection() {
    let mut scene = Scene::established(plain());
    scene.gets(rst());
    assert!(scene.tcp.take_events().contains(Events::CLOSED));
    assert_eq!(scene.tcp.receive(&mut [0; 9]), Err(CallError::Failed(Failure::Reset)));
    assert_eq!(scene.out(), [""; 0]);
}

/// RFC 9293, section 3.10.7.4 (b), section 3.6 (MUST-12): a server that closes with a request unread resets
/// its client after its last answer. The answer was acknowledged, so it is read first; then the failure is
/// returned once, as in Linux.
#[test]
fn text_before_a_reset_is_read_before_the_failure() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(10));
    scene.gets(rst().seq(11));
    assert_eq!(scene.tcp.send(b"x"), Err(CallError::Failed(Failure::Reset)));
    let mut text = [0; 6];
    assert_eq!(scene.tcp.receive(&mut text), Ok(6));
    assert_eq!(text.to_vec(), (1..7).map(stream_byte).collect::<Vec<_>>());
    assert_eq!(scene.tcp.receive(&mut text), Ok(4));
    assert_eq!(scene.tcp.receive(&mut text), Err(CallError::Failed(Failure::Reset)));
    assert_eq!(scene.tcp.receive(&mut text), Ok(0));
    assert_eq!(scene.tcp.send(b"x"), Err(CallError::Failed(Failure::Reset)), "it is not forgotten");
}

/// Copied text from many small segments is read as well; text after a gap is lost.
#[test]
fn a_reset_keeps_copied_text_and_drops_what_is_behind_a_gap() {
    let mut scene = Scene::established(Config { receive_pieces: 4, ..plain() });
    (0..20).for_each(|at| scene.gets(seg().seq(1 + 10 * at).len(10)));
    scene.gets(seg().seq(301).len(10));
    scene.gets(rst().seq(201));
    assert_eq!(scene.reads(), (1..201).map(stream_byte).collect::<Vec<_>>());
    assert!(!scene.tcp.holds_received_text());
}

/// No text is missing before a FIN, so the end of the text is reported whatever follows.
#[test]
fn a_reset_behind_a_fin_does_not_spoil_the_end() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(10).fin());
    scene.gets(rst().seq(12));
    assert_eq!(scene.reads().len(), 10);
    assert_eq!(scene.tcp.receive(&mut [0]), Ok(0));
    assert_eq!(scene.tcp.send(b"x"), Err(CallError::Failed(Failure::Reset)));
}

/// An abort drops the text, because the application wants no more of it.
#[test]
fn an_abort_drops_the_text() {
    for last in [seg().len(10), seg().len(10).fin()] {
        let mut scene = Scene::established(plain());
        scene.gets(last);
        scene.tcp.abort();
        assert_eq!(scene.tcp.readable_bytes(), 0);
        assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::Failed(Failure::Aborted)));
    }
}

/// RFC 5961, section 3.2 (a, c): a reset elsewhere in the window is challenged, one outside is dropped.
#[test]
fn a_guessed_reset_is_challenged() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.answers(rst().seq(500)), [". 1:1 ack 1"]);
    assert_eq!(scene.answers(rst().seq(61_001)), [""; 0]);
    assert_eq!(scene.answers(rst().seq(0)), [""; 0]);
    assert_eq!(scene.tcp.state(), State::Established);
}

/// A SYN in the window is answered by a challenge ACK (RFC 5961, section 4.2).
#[test]
fn a_syn_in_the_window_is_challenged() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.answers(syn().seq(100)), [". 1:1 ack 1"]);
    assert_eq!(scene.tcp.state(), State::Established);
}

/// RFC 5961, section 5.2 (a, b): text with an invalid ACK is not accepted.
#[test]
fn guessed_data_is_challenged() {
    let mut scene = Scene::established(plain());
    scene.sends(100);
    let too_new = seg().len(10).ack(102);
    assert_eq!(scene.answers(too_new), [". 101:101 ack 1"]);
    let too_old = seg().len(10).ack(1_u32.wrapping_sub(50_001));
    assert_eq!(scene.answers(too_old), [". 101:101 ack 1"]);
    assert_eq!(scene.tcp.readable_bytes(), 0);
    // An ACK one largest window back is an old duplicate.
    scene.gets(seg().len(10).ack(1_u32.wrapping_sub(50_000)));
    assert_eq!(scene.tcp.readable_bytes(), 10);
}

/// RFC 5961, section 7 (a): at most ten challenges in five seconds.
#[test]
fn challenges_are_limited() {
    let mut scene = Scene::established(plain());
    let count =
        |scene: &mut Scene| (0..50).map(|_| scene.answers(rst().seq(500)).len()).sum::<usize>();
    assert_eq!(count(&mut scene), 10);
    scene.after(ms(4_999));
    assert_eq!(count(&mut scene), 0);
    scene.after(ms(1));
    assert_eq!(count(&mut scene), 10);
}

/// Unacceptable segments without text are answered within the same limit, so that two sides that disagree do
/// not answer each other for ever.
#[test]
fn an_ack_war_ends() {
    let mut scene = Scene::established(plain());
    let answers: usize = (0..50).map(|_| scene.answers(seg().seq(61_000)).len()).sum();
    assert_eq!(answers, 10);
}

/// RFC 9293, section 3.10.7.1: a segment without a connection is answered by a reset.
#[test]
fn a_stranger_is_reset() {
    let scene = Scene::established(plain());
    let answer = |peer| Reset::answer(&scene.segment(peer)).map(|reset| reset.transmit().flags);
    assert_eq!(answer(seg().len(9)), Some(TcpFlags::RST));
    assert_eq!(answer(syn()), Some(TcpFlags::RST | TcpFlags::ACK));
    assert_eq!(answer(rst()), None);
    let reset = Reset::answer(&scene.segment(syn().len(9))).unwrap().transmit();
    assert_eq!((reset.seq.0, reset.ack), (0, PEER_ISS + 10));
}

/// RFC 9293, section 3.10.5: ABORT resets the peer and drops everything.
#[test]
fn an_abort_resets_the_peer() {
    let mut scene = Scene::established(plain());
    scene.sends(10);
    scene.tcp.abort();
    assert_eq!(scene.out(), ["R. 11:11 ack 1"]);
    assert_eq!(scene.tcp.send(b"x"), Err(CallError::Failed(Failure::Aborted)));
    assert_eq!(scene.answers(seg().ack(11)), ["R 11:11"]);
}

#[test]
fn an_abort_before_the_handshake_says_nothing() {
    let mut scene = Scene::active(plain());
    scene.out();
    scene.tcp.abort();
    assert_eq!(scene.out(), [""; 0]);
    assert!(scene.tcp.is_closed());
}

/// RFC 9293, section 3.5.3 (SHLD-2): text in a reset is ignored and has no effect.
#[test]
fn a_reset_may_carry_text() {
    let mut scene = Scene::established(plain());
    scene.gets(rst().len(20));
    assert!(scene.tcp.is_closed());
    assert_eq!(scene.tcp.readable_bytes(), 0);
}

/// RFC 7323, section 3.2 (d): a reset is accepted without a timestamp.
#[test]
fn a_reset_without_a_timestamp_counts() {
    let mut scene = Scene::established(Config { timestamps: true, ..plain() });
    scene.gets(rst());
    assert!(scene.tcp.is_closed());
}

/// RFC 7323, section 3.2 (e): a reset carries a timestamp if the connection uses them.
#[test]
fn a_reset_has_a_timestamp() {
    let mut scene = Scene::established(Config { timestamps: true, ..plain() });
    scene.gets(seg().len(10).ts(7, 0));
    scene.tcp.abort();
    let reset = scene.tcp.poll_transmit(scene.now).unwrap();
    assert!(reset.flags.contains(TcpFlags::RST));
    let timestamp = SegmentOptions::read(reset.options.as_slice()).timestamp;
    assert_eq!(timestamp.map(|timestamp| timestamp.echo), Some(PEER_TS + 7));
}
