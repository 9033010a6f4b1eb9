//! Sockets that the application has dropped.

use rxo_tcp::{Config, State};

use crate::dsl::*;

/// RFC 9293, section 3.6.1: what was sent is delivered; a peer that says FIN is answered.
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

/// RFC 9293, section 3.5.2 (and what hosts do): FIN-WAIT-2 ends where nobody can end it.
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

/// Half closed is not abandoned: the application reads for as long as it likes.
#[test]
fn a_reader_waits_as_long_as_it_likes() {
    let mut scene = Scene::established(plain());
    scene.tcp.shutdown().unwrap();
    scene.out();
    scene.gets(seg().ack(2));
    scene.after(ms(100_000_000));
    assert_eq!(scene.tcp.state(), State::FinWait2);
    // Dropped later, it is given the time from then on.
    scene.tcp.abandon(scene.now);
    scene.after(ms(59_999));
    assert_eq!(scene.tcp.state(), State::FinWait2);
    scene.after(ms(1));
    assert!(scene.tcp.is_closed());
}

/// RFC 9293, section 3.6.1 (SHLD-3): text that nobody will read is answered by a reset.
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

/// The peer was done before: LAST-ACK ends by itself.
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
