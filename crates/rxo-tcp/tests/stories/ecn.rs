//! Explicit congestion notification (RFC 3168, section 6.1).

use rxo_tcp::{Config, Ecn};
use rxo_wire::TcpFlags;

use crate::dsl::*;

fn scene() -> Scene {
    Scene::established(Config { ecn: true, ..with_sack() })
}

/// RFC 3168, sections 6.1.4 and 6.1.5: text is marked as capable; pure ACKs and retransmissions are
/// not. RFC 9293, section 3.8.2 (SHLD-8).
#[test]
fn only_new_text_is_capable() {
    let mut scene = scene();
    assert_eq!(scene.sends(1_000), ["P. 1:1001 ack 1 ect0"]);
    assert_eq!(scene.answers(seg().seq(101).len(10)), [". 1001:1001 ack 1 sack 101-111"]);
    assert_eq!(scene.after(ms(300))[0], "P. 1:1001 ack 1");
}

/// RFC 3168, section 6.1.3 (a): a mark is echoed until the peer reports, by CWR, that it has reduced its
/// window.
#[test]
fn a_mark_is_echoed_until_it_is_heard() {
    let mut scene = scene();
    scene.gets(seg().len(MSS).ecn(Ecn::Congestion));
    assert_eq!(scene.answers(seg().seq(1001).len(MSS).ecn(Ecn::Capable0)), ["E. 1:1 ack 2001"]);
    scene.gets(seg().seq(2001).len(MSS).ecn(Ecn::Capable0));
    assert_eq!(scene.answers(seg().seq(3001).len(MSS)), ["E. 1:1 ack 4001"]);
    scene.gets(seg().seq(4001).len(MSS).flags(TcpFlags::ACK | TcpFlags::CWR));
    assert_eq!(scene.answers(seg().seq(5001).len(MSS)), [". 1:1 ack 6001"]);
}

/// RFC 3168, section 6.1.2 (a, b, c): an echo reduces the window, once for each flight, and the peer is
/// notified by CWR.
#[test]
fn an_echo_reduces_the_window_once() {
    let mut scene = scene();
    scene.sends(20_000);
    let echo = |ack| seg().ack(ack).flags(TcpFlags::ACK | TcpFlags::ECE);
    scene.gets(echo(1001));
    assert_eq!(scene.cwnd_segments(), 7);
    scene.gets(echo(2001));
    scene.gets(echo(4001));
    let sent = scene.answers(echo(5001));
    assert_eq!(sent[0], "W. 10001:11001 ack 1 ect0");
    assert!(sent[1..].iter().all(|line| line.starts_with(". ")), "{sent:?}");
    assert!(scene.cwnd_segments() <= 7);
}

/// RFC 3168, section 6.1.1 (c): without an agreement, marks and echoes have no effect.
#[test]
fn nothing_is_echoed_without_agreement() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(MSS).ecn(Ecn::Congestion));
    assert_eq!(scene.answers(seg().seq(1001).len(MSS)), [". 1:1 ack 2001"]);
    scene.sends(20_000);
    scene.gets(seg().seq(2001).ack(1001).flags(TcpFlags::ACK | TcpFlags::ECE));
    assert!(scene.cwnd_segments() >= 10);
}

/// RFC 3168, sections 6.1.1 (a, b) and 6.1.1.1: the handshake is not marked as capable. An answer agrees with
/// ECE alone. A retransmitted SYN does not ask again.
#[test]
fn the_handshake_asks_once_and_is_not_capable() {
    let config = || Config { ecn: true, ..plain() };
    let mut scene = Scene::active(config());
    assert_eq!(scene.out(), ["SEW 0:0"]);
    assert_eq!(scene.after(ms(1_000)), ["S 0:0"]);
    let mut scene = Scene::passive(config());
    let asks = TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR;
    assert_eq!(scene.answers(syn().flags(asks)), ["SE. 0:0 ack 1"]);
    assert_eq!(scene.after(ms(1_000)), ["SE. 0:0 ack 1"]);
}

/// RFC 3168, section 6.1.2 (c, d): a loss reduces the window and is reported by CWR; an echo for the same
/// flight reduces nothing more.
#[test]
fn a_loss_and_an_echo_reduce_once() {
    let mut scene = scene();
    scene.sends(40_000);
    let echo = TcpFlags::ACK | TcpFlags::ECE;
    let mut sent = Vec::new();
    for to in 2..=10 {
        sent.extend(scene.answers(seg().flags(echo).sack(&[(1_001, 1 + to * MSS)])));
    }
    let told: Vec<_> = sent.iter().filter(|line| line.starts_with("W. ")).collect();
    assert_eq!(told.len(), 1, "{sent:?}");
    assert!(told[0].ends_with("ect0"), "{told:?}");
    scene.gets(seg().flags(echo).ack(10_001));
    assert_eq!(scene.tcp.statistics().ssthresh, 7_000);
    assert_eq!(scene.cwnd_segments(), 7);
    // Data sent after the reduction belongs to another flight.
    let next = scene.tcp.statistics().snd_nxt - scene.tcp.statistics().snd_una;
    scene.gets(seg().flags(echo).ack(10_001 + next as u32));
    assert!(scene.tcp.statistics().ssthresh < 7_000);
}

/// RFC 3168, section 6.1.2 (c): a timeout is a reduction as well. The first new text reports it by CWR, not
/// the retransmission.
#[test]
fn a_timeout_is_told() {
    let mut scene = scene();
    scene.sends(10_000);
    let again = scene.after(ms(300));
    assert!(again.iter().all(|line| !line.contains('W')), "{again:?}");
    scene.gets(seg().ack(10_001));
    let new = scene.sends(1_000);
    assert_eq!(new, ["PW. 10001:11001 ack 1 ect0"]);
}

/// RFC 3168, section 6.1.3 (b, c): an acknowledgement of several segments reports that one was marked; a mark
/// on a segment with CWR starts the echo anew.
#[test]
fn a_mark_beside_cwr_is_echoed() {
    let mut scene = scene();
    scene.gets(seg().len(MSS).ecn(Ecn::Congestion));
    assert_eq!(scene.answers(seg().seq(1001).len(MSS).ecn(Ecn::Capable0)), ["E. 1:1 ack 2001"]);
    let reduced = TcpFlags::ACK | TcpFlags::CWR;
    scene.gets(seg().seq(2001).len(MSS).flags(reduced).ecn(Ecn::Congestion));
    assert_eq!(scene.answers(seg().seq(3001).len(MSS).ecn(Ecn::Capable0)), ["E. 1:1 ack 4001"]);
}

/// RFC 3168, section 6.1.6: a window probe is not marked, because its loss shows nothing about a router's
/// queue.
#[test]
fn a_window_probe_is_not_capable() {
    let mut scene = scene();
    scene.gets(seg().win(0));
    scene.sends(1_000);
    assert_eq!(scene.after(ms(1_000))[0], ". 1:2 ack 1");
}
