//! Opening: active, passive and simultaneous, with the negotiated features.

use rxo_tcp::{CallError, Closed, Config, Events, Failure, SegmentOptions, State};
use rxo_wire::{FlowKey, TcpFlags};

use crate::dsl::*;

/// An active open answers the SYN-ACK (RFC 9293, section 3.5, figure 6).
#[test]
fn an_active_open_is_answered() {
    let mut scene = Scene::active(plain());
    assert_eq!(scene.out(), ["S 0:0"]);
    assert_eq!(scene.answers(syn().ack(1)), [". 1:1 ack 1"]);
    assert_eq!(scene.tcp.state(), State::Established);
    assert!(scene.tcp.take_events().contains(Events::CONNECTED));
}

/// A passive open answers the SYN (RFC 9293, section 3.5, figure 6).
#[test]
fn a_passive_open_answers() {
    let mut scene = Scene::passive(plain());
    assert_eq!(scene.out(), [""; 0]);
    assert_eq!(scene.answers(syn()), ["S. 0:0 ack 1"]);
    assert!(matches!(scene.tcp.state(), State::SynReceived(_)));
    assert_eq!(scene.answers(seg()), [""; 0]);
    assert_eq!(scene.tcp.state(), State::Established);
}

/// Both sides may open at once (RFC 9293, section 3.5, MUST-10, figure 7).
#[test]
fn both_sides_may_open_at_once() {
    let mut scene = Scene::active(plain());
    scene.out();
    assert_eq!(scene.answers(syn()), ["S. 0:0 ack 1"]);
    assert_eq!(scene.answers(syn().ack(1)), [""; 0]);
    assert_eq!(scene.tcp.state(), State::Established);
    assert!(scene.tcp.take_events().contains(Events::CONNECTED));
    // Our ACK was lost, and the peer repeats its SYN-ACK, which is answered.
    assert_eq!(scene.answers(syn().ack(1)), [". 1:1 ack 1"]);
    assert_eq!(scene.sends(10), ["P. 1:11 ack 1"]);

    // An ACK also opens the connection; a segment that does not acknowledge our SYN has no effect.
    let mut scene = Scene::active(plain());
    scene.out();
    scene.gets(syn());
    scene.out();
    assert_eq!(scene.answers(syn().seq(1).ack(1)), [". 1:1 ack 1"]);
    assert_eq!(scene.answers(syn().ack(2)), [". 1:1 ack 1"]);
    assert!(matches!(scene.tcp.state(), State::SynReceived(_)));
    assert_eq!(scene.answers(seg()), [""; 0]);
    assert_eq!(scene.tcp.state(), State::Established);
}

/// RFC 9293, section 3.5 (MUST-10): both answers arrive before our SYN-ACK leaves, and the peer still gets
/// its ACK. RFC 7323, section 2.2: the window of a SYN is not scaled.
#[test]
fn both_answers_of_a_simultaneous_open_may_come_together() {
    let mut scene = Scene::active(Config { window_scaling: true, ..plain() });
    scene.out();
    scene.gets_aggregate([syn().scale(3), syn().scale(3).ack(1).win(1_000)]);
    assert_eq!(scene.out(), [". 1:1 ack 1"]);
    assert_eq!(scene.tcp.state(), State::Established);
    assert_eq!(scene.tcp.statistics().snd_wnd, 1_000);
    scene.gets(seg().win(1_000));
    assert_eq!(scene.tcp.statistics().snd_wnd, 8_000);
}

/// A listener keeps a connection without the final ACK as long as Linux does: five repetitions of the
/// SYN-ACK, 63 s. A simultaneous open keeps the time limit of an active one.
#[test]
fn a_half_open_connection_ends_after_63_seconds() {
    let mut scene = Scene::passive(plain());
    scene.gets(syn());
    assert_eq!(scene.after(ms(62_999)), ["S. 0:0 ack 1"; 6]);
    assert!(matches!(scene.tcp.state(), State::SynReceived(_)));
    assert_eq!(scene.after(ms(1)), [""; 0]);
    assert_eq!(scene.tcp.state(), State::Closed(Closed { failure: Some(Failure::TimedOut) }));

    let mut scene = Scene::active(plain());
    scene.gets(syn());
    scene.after(ms(179_999));
    assert!(matches!(scene.tcp.state(), State::SynReceived(_)));
}

/// A shorter handshake timeout applies to both kinds of open.
#[test]
fn a_half_open_connection_lives_no_longer_than_any_handshake() {
    let mut scene = Scene::passive(Config { handshake_timeout: ms(5_000), ..plain() });
    scene.gets(syn());
    scene.after(ms(5_000));
    assert!(scene.tcp.is_closed());
}

/// RFC 9293, section 3.10.7.3: an ACK of data that was never sent is reset. Section 3.5.1, figure 9: it comes
/// from an old connection of the peer's, as after a restart with the same ports. The SYN is sent again after
/// the reset that ends it.
#[test]
fn a_wrong_answer_is_reset_and_the_syn_sent_anew() {
    let mut scene = Scene::active(plain());
    scene.out();
    assert_eq!(scene.answers(seg().ack(7)), ["R 7:7", "S 0:0"]);
    assert!(matches!(scene.tcp.state(), State::SynSent(_)));
    // Only once: later wrong answers cause only a reset each.
    assert_eq!(scene.answers(seg().ack(7)), ["R 7:7"]);
    assert_eq!(scene.answers(syn().ack(1)), [". 1:1 ack 1"]);
    assert_eq!(scene.tcp.state(), State::Established);
}

/// A wrong reset is not answered, so it causes no new SYN either.
#[test]
fn a_wrong_reset_brings_no_syn() {
    let mut scene = Scene::active(plain());
    scene.out();
    assert_eq!(scene.answers(seg().flags(TcpFlags::RST).ack(7)), [""; 0]);
}

#[test]
fn a_refusal_is_told() {
    let mut scene = Scene::active(plain());
    scene.out();
    // Without a valid ACK the reset may be forged.
    scene.gets(seg().flags(TcpFlags::RST));
    assert!(matches!(scene.tcp.state(), State::SynSent(_)));
    scene.gets(seg().flags(TcpFlags::RST).ack(1));
    assert!(scene.tcp.is_closed());
    assert_eq!(scene.tcp.send(b"x"), Err(CallError::Failed(Failure::Refused)));
}

/// A listener accepts only a SYN (RFC 9293, section 3.10.7.2).
#[test]
fn a_listener_wants_a_syn() {
    let mut scene = Scene::passive(plain());
    assert_eq!(scene.answers(seg().flags(TcpFlags::RST)), [""; 0]);
    let reset = scene.answers(seg().ack(5));
    assert!(reset[0].starts_with("R "), "{reset:?}");
    assert_eq!(scene.answers(seg().flags(TcpFlags::FIN)), [""; 0]);
    assert_eq!(scene.tcp.state(), State::Listen);
}

/// RFC 9293, section 3.5 (MUST-11), and section 3.10.7.4, second and fourth step: the connection returns to
/// LISTEN.
#[test]
fn a_peer_that_gives_up_leaves_a_listener() {
    for last in [TcpFlags::RST, TcpFlags::SYN] {
        let mut scene = Scene::passive(plain());
        scene.gets(syn());
        scene.out();
        scene.gets(seg().flags(last));
        assert_eq!(scene.tcp.state(), State::Listen);
        assert_eq!(scene.answers(syn()), ["S. 0:0 ack 1"]);
    }
}

/// RFC 9293, section 3.8.3 (MUST-22, 23): a SYN is repeated for three minutes. RFC 6298, sections 2.1, 5.5
/// and 5.6.
#[test]
fn a_syn_is_repeated_for_three_minutes() {
    let mut scene = Scene::active(plain());
    scene.out();
    assert_eq!(scene.after(ms(999)), [""; 0]);
    assert_eq!(scene.after(ms(1)), ["S 0:0"]);
    assert_eq!(scene.after(ms(2_000)), ["S 0:0"]);
    assert!(scene.tcp.take_events().is_empty());
    assert_eq!(scene.after(ms(4_000)), ["S 0:0"]);
    assert!(scene.tcp.take_events().contains(Events::STALLED));
    scene.after(ms(172_999));
    assert!(!scene.tcp.is_closed());
    scene.after(ms(1));
    let failed = scene.tcp.receive(&mut [0]);
    assert_eq!(failed, Err(CallError::Failed(Failure::TimedOut)));
}

/// RFC 9293, section 3.4: the SYN-ACK is repeated by the timer and in answer to a repeated SYN.
#[test]
fn a_lost_syn_ack_is_repeated() {
    let mut scene = Scene::passive(plain());
    scene.gets(syn());
    scene.out();
    assert_eq!(scene.after(ms(1_000)), ["S. 0:0 ack 1"]);
    assert_eq!(scene.answers(syn()), ["S. 0:0 ack 1"]);
}

/// RFC 5681, section 3.1 (g), and RFC 6928, section 2 (b): after a retransmitted SYN the first window is one
/// segment. RFC 6298, section 5.7.
#[test]
fn a_slow_handshake_makes_a_careful_start() {
    let mut scene = Scene::active(plain());
    scene.after(ms(1_500));
    scene.gets(syn().ack(1));
    assert_eq!(scene.cwnd_segments(), 1);
    assert_eq!(scene.tcp.statistics().rto, ms(3_000));
    assert_eq!(Scene::established(plain()).cwnd_segments(), 10);
}

/// RFC 9293, section 3.7.1 (MUST-14, 15, 16): the option, its absence, its effect.
#[test]
fn the_peers_segment_size_is_kept() {
    let mss_with = |option, config| {
        let mut scene = Scene::active(config);
        scene.out();
        scene.gets(syn().ack(1).mss(option));
        scene.tcp.statistics().mss
    };
    assert_eq!(mss_with(Some(700), plain()), 700);
    assert_eq!(mss_with(Some(9000), plain()), MSS);
    assert_eq!(mss_with(None, plain()), 536);
    let addresses = [0x20; 32];
    let pair = FlowKey::v6(&addresses, 0x1388_0050, 0);
    let large = Config { maximum_segment_size: 1440, ..plain() };
    let mut v6 = rxo_tcp::Connection::open_passive(large, pair, SECRET).unwrap();
    let scene = Scene::passive(plain());
    v6.on_arrival(scene.now, scene.segment(syn().mss(None)).into());
    assert_eq!(v6.statistics().mss, 1220);
}

/// A SYN offers all configured options, a SYN-ACK only those that were offered: RFC 9293, section 3.7.1
/// (MUST-14, MUST-67, SHLD-5), RFC 7323, sections 2.2 (a) and 3.2 (a), RFC 2018, section 2, RFC 3168, section
/// 6.1.1 (a).
#[test]
fn what_both_want_is_agreed() {
    let all = || Config { maximum_segment_size: MSS as u16, ..Config::default() };
    let mut scene = Scene::active(all());
    let first = scene.tcp.poll_transmit(scene.now).unwrap();
    assert!(first.flags.contains(TcpFlags::ECE | TcpFlags::CWR));
    let offered = SegmentOptions::read(first.options.as_slice());
    assert_eq!(offered.maximum_segment_size, Some(MSS as u16));
    assert_eq!(offered.window_scale, Some(3));
    assert!(offered.is_sack_permitted && offered.timestamp.is_some());

    let mut scene = Scene::passive(all());
    scene.gets(syn());
    let answer = scene.tcp.poll_transmit(scene.now).unwrap();
    let agreed = SegmentOptions::read(answer.options.as_slice());
    let nothing = SegmentOptions { maximum_segment_size: Some(1000), ..SegmentOptions::default() };
    assert_eq!(agreed, nothing);
    assert!(!answer.flags.contains(TcpFlags::ECE));

    let mut scene = Scene::passive(all());
    let asks = TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR;
    scene.gets(syn().flags(asks).scale(2).sack_permitted().ts(1, 0));
    let statistics = scene.tcp.statistics();
    assert!(statistics.timestamps && statistics.sack && statistics.ecn);
    // The timestamp option takes its bytes from each segment (RFC 9293, section 3.7.1).
    assert_eq!(statistics.mss, MSS - 12);
}

/// A window scale above fourteen counts as fourteen (RFC 7323, section 2.3 (b)).
#[test]
fn a_huge_scale_is_fourteen() {
    let mut scene = Scene::active(Config { window_scaling: true, ..plain() });
    scene.out();
    scene.gets(syn().ack(1).scale(200).win(10));
    assert_eq!(scene.tcp.statistics().snd_wnd, 10);
    scene.gets(seg().win(2));
    assert_eq!(scene.tcp.statistics().snd_wnd, 2 << 14);
}

/// RFC 9293, section 3.9.1: data given before the connection is open follows the handshake.
#[test]
fn data_may_wait_for_the_handshake() {
    let mut scene = Scene::active(plain());
    assert_eq!(scene.sends(10), ["S 0:0"]);
    assert_eq!(scene.answers(syn().ack(1)), ["P. 1:11 ack 1"]);
}

/// RFC 9293, section 3.5 (MUST-11): a connection from an active open does not return to LISTEN.
#[test]
fn a_peer_that_gives_up_refuses_an_active_open() {
    let mut scene = Scene::active(plain());
    scene.out();
    scene.gets(syn());
    assert!(matches!(scene.tcp.state(), State::SynReceived(_)));
    scene.gets(seg().flags(TcpFlags::RST));
    assert_eq!(scene.tcp.send(b"x"), Err(CallError::Failed(Failure::Refused)));
}

/// RFC 7323, section 2.2 (a): a window scale from one side only is not used.
#[test]
fn one_scale_is_no_scale() {
    let mut scene = Scene::active(Config { window_scaling: true, ..plain() });
    scene.out();
    scene.gets(syn().ack(1));
    scene.gets(seg().win(1_000));
    assert_eq!(scene.tcp.statistics().snd_wnd, 1_000);
    let mut scene = Scene::active(plain());
    scene.out();
    scene.gets(syn().ack(1).scale(3));
    scene.gets(seg().win(1_000));
    assert_eq!(scene.tcp.statistics().snd_wnd, 1_000);
}

/// RFC 9293, section 3.10.7.3: text and FIN of a SYN-ACK are processed, by the sixth step and those after it.
#[test]
fn text_in_a_syn_ack_is_taken() {
    let mut scene = Scene::active(plain());
    scene.out();
    assert_eq!(scene.answers(syn().ack(1).len(20)), [". 1:1 ack 21"]);
    assert_eq!(scene.tcp.state(), State::Established);
    assert_eq!(scene.reads().len(), 20);

    let mut scene = Scene::active(plain());
    scene.out();
    assert_eq!(scene.answers(syn().ack(1).len(20).fin()), [". 1:1 ack 22"]);
    assert_eq!(scene.tcp.state(), State::CloseWait);
    assert_eq!(scene.reads().len(), 20);
    assert_eq!(scene.tcp.receive(&mut [0]), Ok(0));
}
