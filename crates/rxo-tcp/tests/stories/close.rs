//! Closing in every order, half-closed connections, and TIME-WAIT (RFC 9293, section 3.6).

use rxo_tcp::{CallError, Config, Connection, Events, Failure, State};
use rxo_wire::TcpFlags;

use crate::dsl::*;

/// RFC 9293, section 3.6.1 (MUST-13): this side closes first (section 3.6, figure 12), and stays in TIME-WAIT
/// for two segment lifetimes.
#[test]
fn this_side_closes_first() {
    let mut scene = Scene::established(plain());
    scene.tcp.shutdown().unwrap();
    assert_eq!(scene.out(), ["F. 1:1 ack 1"]);
    assert_eq!(scene.tcp.state(), State::FinWait1);
    assert_eq!(scene.answers(seg().ack(2)), [""; 0]);
    assert_eq!(scene.tcp.state(), State::FinWait2);
    assert_eq!(scene.answers(seg().ack(2).fin()), [". 2:2 ack 2"]);
    assert_eq!(scene.tcp.state(), State::TimeWait);
    scene.after(ms(59_999));
    assert_eq!(scene.tcp.state(), State::TimeWait);
    scene.after(ms(1));
    assert!(scene.tcp.is_closed());
    assert_eq!(scene.tcp.receive(&mut [0]), Ok(0));
}

/// RFC 9293, section 3.6, figure 12: the peer closes first; in the half-closed connection this side continues
/// to send.
#[test]
fn the_peer_closes_first() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.answers(seg().len(5).fin()), [". 1:1 ack 7"]);
    assert_eq!(scene.tcp.state(), State::CloseWait);
    assert!(scene.tcp.take_events().contains(Events::PEER_DONE | Events::READABLE));
    assert_eq!(scene.reads().len(), 5);
    assert_eq!(scene.tcp.receive(&mut [0]), Ok(0));
    assert_eq!(scene.sends(10), ["P. 1:11 ack 7"]);
    scene.tcp.shutdown().unwrap();
    assert_eq!(scene.out(), ["F. 11:11 ack 7"]);
    assert_eq!(scene.tcp.state(), State::LastAck);
    scene.gets(seg().seq(7).ack(12));
    assert!(scene.tcp.is_closed());
}

/// RFC 9293, section 3.6, figure 13: both sides close at once.
#[test]
fn both_close_at_once() {
    let mut scene = Scene::established(plain());
    scene.tcp.shutdown().unwrap();
    scene.out();
    assert_eq!(scene.answers(seg().fin()), [". 2:2 ack 2"]);
    assert_eq!(scene.tcp.state(), State::Closing);
    scene.gets(seg().seq(2).ack(2));
    assert_eq!(scene.tcp.state(), State::TimeWait);
}

#[test]
fn a_fin_that_acknowledges_ours_goes_to_time_wait() {
    let mut scene = Scene::established(plain());
    scene.tcp.shutdown().unwrap();
    scene.out();
    assert_eq!(scene.answers(seg().ack(2).fin()), [". 2:2 ack 2"]);
    assert_eq!(scene.tcp.state(), State::TimeWait);
}

/// RFC 9293, section 3.9.1.4: data sent before CLOSE is delivered before the FIN. A half-closed connection
/// still receives.
#[test]
fn all_that_was_sent_goes_before_the_fin() {
    let mut scene = Scene::established(plain());
    let mut leaves = scene.sends(1_500);
    scene.tcp.shutdown().unwrap();
    leaves.extend(scene.out());
    assert_eq!(leaves, [". 1:1001 ack 1", "FP. 1001:1501 ack 1"]);
    assert_eq!(scene.tcp.send(b"more"), Err(CallError::Closing));
    assert_eq!(scene.tcp.shutdown(), Err(CallError::Closing));
    scene.gets(seg().ack(1502));
    scene.gets(seg().ack(1502).len(100));
    assert_eq!(scene.reads().len(), 100);
}

/// RFC 9293, section 3.10.7.4, eighth step: a FIN is processed in sequence, not before.
#[test]
fn a_fin_waits_for_the_text_before_it() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.answers(seg().seq(101).len(50).fin()), [". 1:1 ack 1"]);
    assert_eq!(scene.tcp.state(), State::Established);
    scene.gets(seg().len(100));
    assert_eq!(scene.tcp.state(), State::CloseWait);
    assert_eq!(scene.out().last().map(String::as_str), Some(". 1:1 ack 152"));
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut scene = Scene::established(plain());
    scene.tcp.shutdown().unwrap();
    scene.out();
    assert_eq!(scene.after(ms(1_000)).first().map(String::as_str), Some("F. 1:1 ack 1"));
}

fn in_time_wait(config: Config) -> Scene {
    let with_timestamps = config.timestamps;
    let mut scene = Scene::established(config);
    scene.tcp.shutdown().expect("it is open");
    scene.out();
    let last = seg().ack(2).fin();
    scene.gets(if with_timestamps { last.ts(5, 0) } else { last });
    scene.out();
    scene
}

/// RFC 9293, section 3.10.7.4: a repeated FIN is answered, and the two segment lifetimes begin again.
#[test]
fn a_repeated_fin_starts_time_wait_again() {
    let mut scene = in_time_wait(plain());
    scene.after(ms(59_000));
    assert_eq!(scene.answers(seg().ack(2).fin()), [". 2:2 ack 2"]);
    scene.after(ms(59_000));
    assert_eq!(scene.tcp.state(), State::TimeWait);
    scene.after(ms(1_000));
    assert!(scene.tcp.is_closed());
}

#[test]
fn an_ack_does_not_start_time_wait_again() {
    let mut scene = in_time_wait(plain());
    scene.after(ms(59_000));
    scene.gets(seg().seq(2).ack(2));
    scene.after(ms(1_000));
    assert!(scene.tcp.is_closed());
}

/// RFC 9293, section 3.6.1: a SYN with a sequence number after all earlier ones may open a new connection.
#[test]
fn a_newer_syn_may_reuse_the_pair() {
    let scene = in_time_wait(plain());
    let reuse = |peer| scene.tcp.reuse_by(&scene.segment(peer));
    assert_eq!(reuse(syn().seq(1)), None);
    assert_eq!(reuse(seg().seq(500)), None);
    let found = reuse(syn().seq(500)).unwrap();
    let mut next = Connection::<Vec<u8>>::open_passive(plain(), PAIR, SECRET).unwrap();
    next.follow(found);
    next.on_arrival(scene.now, scene.segment(syn().seq(500)).into());
    let answer = next.poll_transmit(scene.now).unwrap();
    assert!(answer.flags.contains(TcpFlags::SYN | TcpFlags::ACK));
    assert!(answer.seq - scene.tcp.statistics().snd_nxt > 0);
}

/// RFC 9293, section 3.6.1 (SHLD-4), which asks for RFC 6191, section 2: with timestamps, the timestamp
/// decides.
#[test]
fn a_newer_timestamp_may_reuse_the_pair() {
    let scene = in_time_wait(Config { timestamps: true, ..plain() });
    let reuse = |peer| scene.tcp.reuse_by(&scene.segment(peer)).is_some();
    assert!(reuse(syn().seq(0).ts(6, 0)));
    assert!(!reuse(syn().seq(500).ts(4, 0)));
    assert!(reuse(syn().seq(500).ts(5, 0)));
    assert!(!reuse(syn().seq(0).ts(5, 0)));
}

#[test]
fn closing_before_the_handshake_forgets_it() {
    for mut scene in [Scene::active(plain()), Scene::passive(plain())] {
        scene.tcp.shutdown().unwrap();
        assert!(scene.tcp.is_closed());
        assert_eq!(scene.tcp.poll_at(), None);
    }
}

/// RFC 9293, section 3.10.4: CLOSE in SYN-RECEIVED waits for the handshake.
#[test]
fn closing_in_the_handshake_waits_for_it() {
    let mut scene = Scene::passive(plain());
    scene.gets(syn());
    scene.out();
    scene.tcp.shutdown().unwrap();
    assert_eq!(scene.out(), [""; 0]);
    assert_eq!(scene.answers(seg()), ["F. 1:1 ack 1"]);
    assert_eq!(scene.tcp.state(), State::FinWait1);
}

/// RFC 9293, section 3.6 (MUST-12): the application can tell a normal close from a failure, after it has read
/// all text.
#[test]
fn the_application_learns_how_it_ended() {
    let ended = |scene: &Scene| match scene.tcp.state() {
        State::Closed(closed) => Some(closed.failure),
        _ => None,
    };
    // A normal close, by either side first: reads return the end and no failure, repeatedly.
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(5).fin());
    assert!(scene.tcp.take_events().contains(Events::PEER_DONE));
    scene.tcp.shutdown().unwrap();
    scene.out();
    scene.gets(seg().seq(7).ack(2));
    assert_eq!(ended(&scene), Some(None));
    assert!(scene.tcp.take_events().contains(Events::CLOSED));
    assert_eq!(scene.reads().len(), 5);
    assert_eq!(scene.tcp.receive(&mut [0]), Ok(0));
    let mut scene = in_time_wait(plain());
    assert!(scene.tcp.take_events().contains(Events::PEER_DONE));
    scene.after(ms(60_000));
    assert_eq!((ended(&scene), scene.tcp.receive(&mut [0])), (Some(None), Ok(0)));

    // An abort after the peer's FIN: its text is complete, but not all of ours has arrived.
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(5).fin());
    assert_eq!(scene.reads().len(), 5);
    assert_eq!(scene.tcp.receive(&mut [0]), Ok(0));
    scene.gets(seg().seq(7).flags(TcpFlags::RST));
    assert_eq!((ended(&scene), scene.tcp.receive(&mut [0])), (Some(Some(Failure::Reset)), Ok(0)));

    let mut scene = Scene::established(plain());
    scene.gets(seg().flags(TcpFlags::RST));
    assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::Failed(Failure::Reset)));
}

/// RFC 9293, section 3.9.1.2 (MUST-60, MUST-61): without an explicit push, the last segment of the queued
/// data has PSH. No data waits longer than for an acknowledgement or a probe.
#[test]
fn what_is_sent_does_not_wait_for_ever() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.sends(2_010), [". 1:1001 ack 1", ". 1001:2001 ack 1"]);
    assert_eq!(scene.answers(seg().ack(2001)), ["P. 2001:2011 ack 1"]);
    scene.gets(seg().ack(2011).win(0));
    assert_eq!(scene.sends(10), [""; 0]);
    assert!(!scene.after(ms(1_000)).is_empty());
    assert_eq!(scene.answers(seg().ack(2012)), ["P. 2012:2021 ack 1"]);
}

/// RFC 5681, section 4.2: a FIN that arrives before earlier data is answered at once, like data.
#[test]
fn an_early_fin_is_answered() {
    let mut scene = Scene::established(plain());
    assert_eq!(
        scene.answers(seg().seq(1001).flags(TcpFlags::FIN | TcpFlags::ACK)),
        [". 1:1 ack 1"]
    );
    assert_eq!(scene.answers(seg().len(MSS)), [". 1:1 ack 1002"]);
}

/// RFC 5681, section 2: the congestion window counts data, so a FIN alone does not wait for it.
#[test]
fn a_fin_alone_is_no_load() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.sends(10_000).len(), 10);
    scene.tcp.shutdown().unwrap();
    assert_eq!(scene.out(), ["F. 10001:10001 ack 1"]);
}

/// Returns a connection that the peer has closed, then this side, with 30,000 queued bytes that exceed the
/// windows.
fn queued_in_close_wait() -> Scene {
    let mut scene = Scene::established(plain());
    scene.gets(seg().win(2_000).fin());
    scene.out();
    assert_eq!(scene.sends(30_000).len(), 2);
    scene.tcp.shutdown().expect("it is open");
    assert_eq!(scene.out(), [""; 0]);
    scene
}

/// RFC 9293, section 3.10.4: LAST-ACK begins when our FIN leaves, after all text.
#[test]
fn last_ack_begins_when_the_fin_leaves() {
    let mut scene = queued_in_close_wait();
    assert_eq!(scene.tcp.state(), State::CloseWait);
    let (mut acked, mut last) = (2_001, String::new());
    while acked < 30_001 {
        assert_eq!(scene.tcp.state(), State::CloseWait);
        let left = scene.answers(seg().seq(2).ack(acked).win(3_000));
        acked += left.iter().filter(|line| !line.starts_with('F')).count() as u32 * MSS;
        last = left.last().cloned().unwrap_or(last);
    }
    assert_eq!(last, "F. 30001:30001 ack 2");
    assert_eq!(scene.tcp.state(), State::LastAck);
    scene.gets(seg().seq(2).ack(30_002));
    assert_eq!(scene.tcp.state(), State::Closed(rxo_tcp::Closed { failure: None }));
}

/// RFC 9293, section 3.10.4: CLOSING also begins when our FIN leaves; a peer's FIN before that is no
/// simultaneous close.
#[test]
fn closing_begins_when_the_fin_leaves() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().win(1_000));
    scene.sends(2_000);
    scene.tcp.shutdown().unwrap();
    assert_eq!(scene.answers(seg().win(1_000).len(5).fin()), [". 1001:1001 ack 7"]);
    assert_eq!(scene.tcp.state(), State::FinWait1);
    // The peer has closed: text that seems to follow its FIN is not read.
    scene.gets(seg().win(1_000).seq(7).len(10).fin());
    assert_eq!(scene.reads().len(), 5);
    assert_eq!(scene.tcp.receive(&mut [0]), Ok(0));
    scene.out();
    assert_eq!(scene.answers(seg().seq(7).ack(1_001)), [". 1001:2001 ack 7", "F. 2001:2001 ack 7"]);
    assert_eq!(scene.tcp.state(), State::Closing);
    scene.gets(seg().seq(7).ack(2_002));
    assert_eq!(scene.tcp.state(), State::TimeWait);
}

/// RFC 9293, section 3.6 (MUST-12): a reset before the peer has all text is a failure in every state.
#[test]
fn a_reset_before_all_is_delivered_is_a_failure() {
    let failed = State::Closed(rxo_tcp::Closed { failure: Some(Failure::Reset) });
    let mut scene = queued_in_close_wait();
    scene.gets(seg().seq(2).flags(TcpFlags::RST));
    assert_eq!(scene.tcp.state(), failed);

    // The FIN has left, and text before it is not acknowledged.
    for peer_first in [true, false] {
        let mut scene = Scene::established(plain());
        if peer_first {
            scene.gets(seg().fin());
        }
        scene.sends(2_000);
        scene.tcp.shutdown().unwrap();
        scene.out();
        if !peer_first {
            scene.gets(seg().fin());
        }
        scene.gets(seg().seq(2).ack(1_001));
        assert!(matches!(scene.tcp.state(), State::LastAck | State::Closing));
        scene.gets(seg().seq(2).flags(TcpFlags::RST));
        assert_eq!(scene.tcp.state(), failed, "the peer first: {peer_first}");
    }
}

/// RFC 9293, section 3.10.7.4, second step: if only our FIN is missing, nothing is lost.
#[test]
fn a_reset_after_all_was_delivered_is_none() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().fin());
    scene.sends(2_000);
    scene.tcp.shutdown().unwrap();
    scene.out();
    scene.gets(seg().seq(2).ack(2_001));
    scene.gets(seg().seq(2).flags(TcpFlags::RST));
    assert_eq!(scene.tcp.state(), State::Closed(rxo_tcp::Closed { failure: None }));
}

/// RFC 9293, section 3.10.5: ABORT resets the peer in any state, unless the peer has everything.
#[test]
fn an_abort_with_text_outstanding_resets_the_peer() {
    let mut scene = queued_in_close_wait();
    scene.tcp.abort();
    assert_eq!(scene.out(), ["R. 2001:2001 ack 2"]);

    let mut scene = Scene::established(plain());
    scene.gets(seg().fin());
    scene.sends(500);
    scene.tcp.shutdown().unwrap();
    scene.out();
    assert_eq!(scene.tcp.state(), State::LastAck);
    scene.tcp.abort();
    assert_eq!(scene.out(), ["R. 502:502 ack 2"]);
}
