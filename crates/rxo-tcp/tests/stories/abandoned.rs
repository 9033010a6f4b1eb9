//! Orphans: sockets that the application has dropped.

use rxo_tcp::{Closed, Config, Failure, State};

use crate::dsl::*;

/// RFC 9293, section 3.6.1: sent data is delivered, and the peer's FIN is answered.
#[test]
fn what_was_sent_is_still_delivered() {
    let mut scene = Scene::established(plain());
    scene.sends(1_500);
    scene.tcp.abandon(scene.now);
    assert_eq!(scene.out(), ["FP. 1001:1501 ack 1"]);
    scene.gets(seg().ack(1_502));
    assert_eq!(scene.tcp.state(), State::FinWait2);
    assert_eq!(scene.answers(seg().ack(1_502).fin()), [". 1502:1502 ack 2"]);
    assert_eq!(scene.tcp.state(), State::TimeWait);
}

/// RFC 9293, section 3.5.2: FIN-WAIT-2 ends by a timer if no application can end it, as on other hosts.
#[test]
fn a_peer_that_never_says_fin_is_not_waited_for() {
    let mut scene = Scene::established(Config { fin_wait_2: ms(5_000), ..plain() });
    scene.tcp.abandon(scene.now);
    scene.out();
    scene.gets(seg().ack(2));
    assert_eq!(scene.after(ms(4_999)), [""; 0]);
    assert_eq!(scene.tcp.state(), State::FinWait2);
    scene.after(ms(1));
    assert!(scene.tcp.is_closed());
    assert_eq!(scene.tcp.poll_at(), None);
}

/// A half-closed connection is no orphan: the application reads for as long as it likes.
#[test]
fn a_reader_waits_as_long_as_it_likes() {
    let mut scene = Scene::established(plain());
    scene.tcp.shutdown().unwrap();
    scene.out();
    scene.gets(seg().ack(2));
    scene.after(ms(100_000_000));
    assert_eq!(scene.tcp.state(), State::FinWait2);
    // If dropped later, the connection gets the full time from then on.
    scene.tcp.abandon(scene.now);
    scene.after(ms(59_999));
    assert_eq!(scene.tcp.state(), State::FinWait2);
    scene.after(ms(1));
    assert!(scene.tcp.is_closed());
}

/// RFC 9293, section 3.6.1 (SHLD-3): text that no application will read is answered by a reset.
#[test]
fn text_that_nobody_reads_is_refused() {
    let mut scene = Scene::established(plain());
    scene.tcp.abandon(scene.now);
    scene.out();
    scene.gets(seg().ack(2));
    assert_eq!(scene.answers(seg().ack(2).len(10)), ["R. 2:2 ack 1"]);
    assert!(scene.tcp.is_closed());

    let mut scene = Scene::established(plain());
    scene.gets(seg().len(10));
    scene.tcp.abandon(scene.now);
    assert_eq!(scene.out(), ["R. 1:1 ack 11"]);
    assert!(scene.tcp.is_closed());
}

/// The peer has closed before, so LAST-ACK ends by its acknowledgement.
#[test]
fn a_peer_that_is_done_is_answered_with_our_fin() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().fin());
    scene.out();
    scene.tcp.abandon(scene.now);
    assert_eq!(scene.out(), ["F. 1:1 ack 2"]);
    scene.gets(seg().seq(2).ack(2));
    assert!(scene.tcp.is_closed());
}

fn orphan() -> Scene {
    orphan_with(50_000)
}

/// Returns an orphan with `bytes` bytes that the peer does not have.
fn orphan_with(bytes: u32) -> Scene {
    let config = Config { orphan_timeout: ms(100_000), send_buffer_bytes: bytes, ..plain() };
    let mut scene = Scene::established(config);
    scene.sends(bytes);
    scene.tcp.abandon(scene.now);
    scene
}

/// Lets the peer take `segments` segments, one every 1.2 seconds.
fn takes(scene: &mut Scene, segments: u32) {
    for number in 1..=segments {
        scene.after(ms(1_200));
        assert!(!scene.tcp.is_closed(), "after {number} segments");
        scene.gets(seg().ack(1 + 1_000 * number).win(2_000));
    }
}

/// Answers each segment by `answer` until the connection is closed. Returns the elapsed time.
fn answered(scene: &mut Scene, mut answer: impl FnMut(u32) -> Peer) -> u64 {
    let start = scene.now;
    for turn in 0..100_000 {
        if scene.tcp.is_closed() {
            return (scene.now - start).as_millis() as u64;
        }
        let next = scene.tcp.poll_at().expect("a timer that ends it");
        scene.after((next - scene.now).max(ms(100)));
        scene.gets(answer(turn));
    }
    panic!("it does not end: {:?}", scene.tcp.state());
}

/// RFC 9293, section 3.8.6.1 (MUST-37) holds for connections with an application. An orphan ends in bounded
/// time, whatever the peer answers.
#[test]
fn a_peer_that_takes_nothing_is_not_waited_for() {
    let mut scene = orphan();
    assert_eq!(answered(&mut scene, |_| seg().ack(1).win(0)), 100_000);
    assert_eq!(scene.tcp.state(), State::Closed(Closed { failure: Some(Failure::TimedOut) }));

    // The reset tells the peer that the rest will not come.
    let mut scene = orphan();
    scene.gets(seg().win(0));
    let mut left = Vec::new();
    while !scene.tcp.is_closed() {
        left = scene.after(ms(1_000));
        scene.gets(seg().win(0));
    }
    assert!(left.last().is_some_and(|last| last.starts_with("R. ")), "{left:?}");
}

/// With one byte for each probe, the data would take a week.
#[test]
fn a_peer_that_takes_a_byte_at_a_time_is_not_waited_for() {
    let mut scene = orphan();
    let taken = answered(&mut scene, |turn| seg().ack(2 + turn).win(1));
    assert!(taken <= 100_000, "{taken} ms");
}

/// A peer that reads steadily gets everything, however long it takes, because no fixed time suits every path.
#[test]
fn a_peer_that_reads_steadily_is_waited_for() {
    let mut scene = orphan_with(1_000_000);
    // The peer takes 83,000 bytes in each `orphan_timeout`, for twelve of them.
    takes(&mut scene, 1_000);
    scene.gets(seg().ack(1_000_002).fin());
    assert_eq!(scene.tcp.state(), State::TimeWait);
}

/// Earlier progress earns no credit: a peer that stops gets at most twice the time.
#[test]
fn a_peer_that_reads_no_further_is_not_waited_for() {
    let mut scene = orphan_with(1_000_000);
    takes(&mut scene, 400);
    let taken = answered(&mut scene, |_| seg().ack(400_001).win(0));
    assert!((20_000..=200_000).contains(&taken), "{taken} ms");
    assert_eq!(scene.tcp.state(), State::Closed(Closed { failure: Some(Failure::TimedOut) }));
}

/// The time limit of orphans does not shorten TIME-WAIT and FIN-WAIT-2, which have limits of their own (RFC
/// 9293, section 3.6.1).
#[test]
fn what_was_delivered_in_time_ends_as_ever() {
    let mut scene = Scene::established(Config { orphan_timeout: ms(10_000), ..plain() });
    scene.tcp.abandon(scene.now);
    scene.out();
    scene.gets(seg().ack(2).fin());
    assert_eq!(scene.tcp.state(), State::TimeWait);
    scene.after(ms(59_999));
    assert_eq!(scene.tcp.state(), State::TimeWait);
    let mut scene = Scene::established(Config { orphan_timeout: ms(10_000), ..plain() });
    scene.tcp.abandon(scene.now);
    scene.out();
    scene.gets(seg().ack(2));
    scene.after(ms(10_000));
    assert_eq!(scene.tcp.state(), State::Closed(Closed { failure: None }));
}
