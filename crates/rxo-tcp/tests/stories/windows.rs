//! The windows of both sides, and the Nagle algorithm (RFC 9293, sections 3.7.4 and 3.8.6).

use rxo_tcp::{Config, Failure, State};
use rxo_wire::TcpFlags;

use crate::dsl::*;

/// RFC 9293, section 3.7.4 (SHLD-7, MUST-17): the Nagle algorithm and its switch.
#[test]
fn small_segments_wait_for_what_is_outstanding() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.sends(10), ["P. 1:11 ack 1"]);
    assert_eq!(scene.sends(10), [""; 0]);
    assert_eq!(scene.sends(10), [""; 0]);
    assert_eq!(scene.answers(seg().ack(11)), ["P. 11:31 ack 1"]);
    scene.tcp.set_nagle(false);
    assert_eq!(scene.sends(10), ["P. 31:41 ack 1"]);
}

/// RFC 9293, section 3.9.1.2 (SHLD-27, SHLD-28): text of several calls is joined into segments of the largest
/// size.
#[test]
fn full_segments_do_not_wait() {
    let mut scene = Scene::established(plain());
    scene.sends(10);
    assert_eq!(scene.sends(2_500), [". 11:1011 ack 1", ". 1011:2011 ack 1"]);
}

/// A GSO frame has PSH at its end, so that a receiver that aggregates does not wait.
#[test]
fn a_large_send_leaves_as_one() {
    let mut scene = Scene::established(Config { large_send_bytes: 64_000, ..plain() });
    assert_eq!(scene.sends(4_500), ["P. 1:4001 ack 1 gso 1000"]);
    assert_eq!(scene.answers(seg().ack(4001)), ["P. 4001:4501 ack 1"]);
    scene.tcp.set_nagle(false);
    scene.gets(seg().ack(4501));
    assert_eq!(scene.sends(4_500), ["P. 4501:9001 ack 1 gso 1000"]);
}

/// Text that is followed at once by more text has no PSH, so that a receiver may aggregate both.
#[test]
fn the_last_of_several_large_sends_has_psh() {
    let mut scene = Scene::established(Config { large_send_bytes: 2_000, ..plain() });
    let expected = [". 1:2001 ack 1 gso 1000", "P. 2001:4001 ack 1 gso 1000"];
    assert_eq!(scene.sends(4_500), expected);
}

/// RFC 5681, section 3.1 (a): here the congestion window is smaller than the peer's window.
#[test]
fn no_more_leaves_than_the_congestion_window() {
    for large_send_bytes in [0, 64_000] {
        let mut scene = Scene::established(Config { large_send_bytes, ..plain() });
        scene.sends(40_000);
        for turn in 0..20 {
            let seen = scene.tcp.statistics();
            let out = (seen.snd_nxt - seen.snd_una) as u32;
            assert!(out <= seen.cwnd && out + MSS > seen.cwnd, "{seen:?}");
            assert!(seen.unsent > 0);
            scene.answers(seg().ack(1 + (turn + 1) * MSS));
            scene.sends(2 * MSS);
        }
    }
}

/// RFC 5681, section 3.1 (a): here the peer's window is smaller.
#[test]
fn no_more_leaves_than_the_peer_allows() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().win(2_500));
    assert_eq!(scene.sends(5_000), [". 1:1001 ack 1", ". 1001:2001 ack 1"]);
    assert_eq!(scene.answers(seg().ack(1001).win(1_500)), [""; 0]);
    assert_eq!(scene.answers(seg().ack(1001).win(2_000)), [". 2001:3001 ack 1"]);
}

/// RFC 9293, section 3.10.7.4, fifth step: SND.WL1 and SND.WL2 keep an old segment from changing the
/// window.
#[test]
fn an_old_segment_does_not_change_the_window() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(10).win(9_000));
    scene.gets(seg().seq(11).len(10).win(8_000));
    scene.gets(seg().seq(1).len(11).win(500));
    assert_eq!(scene.tcp.statistics().snd_wnd, 8_000);
    // A segment that arrives early counts, and those before it, although acceptable, do not change the window
    // later.
    scene.gets(seg().seq(1_001).len(10).win(7_000));
    scene.gets(seg().seq(21).len(10).win(500));
    assert_eq!((scene.tcp.statistics().snd_wnd, scene.tcp.readable_bytes()), (7_000, 30));
    // If two segments have the same SEQ, the one with the higher ACK number is newer.
    scene.sends(100);
    scene.gets(seg().seq(1_011).ack(101).win(6_000));
    scene.gets(seg().seq(1_011).ack(51).win(500));
    assert_eq!(scene.tcp.statistics().snd_wnd, 6_000);
    scene.gets(seg().seq(1_011).ack(101).win(5_000));
    assert_eq!(scene.tcp.statistics().snd_wnd, 5_000);
}

/// A segment that repeats old text with a higher ACK number updates the window, as in Linux. By the RFC the
/// old window would stay, and would seem to end further on than the peer ever offered.
#[test]
fn a_repetition_that_acknowledges_more_changes_the_window() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(10).win(3_000));
    assert_eq!(scene.sends(10_000).len(), 3);
    // The peer's ten bytes again, because our acknowledgement was lost.
    assert_eq!(scene.answers(seg().len(10).ack(2_001).win(1_000)), [". 3001:3001 ack 11"]);
    assert_eq!(
        scene.tcp.statistics().snd_wnd,
        3_000,
        "a segment that is not acceptable says nothing"
    );
    scene.gets(seg().seq(11).len(10).ack(2_001).win(1_000));
    scene.gets(seg().seq(6).len(20).ack(3_001).win(500));
    assert_eq!(scene.tcp.statistics().snd_wnd, 500);
}

/// RFC 7323, sections 2.2 (b) and 2.3 (a): windows are scaled after the handshake, not during it.
#[test]
fn windows_are_scaled() {
    let config = Config {
        window_scaling: true,
        receive_buffer_bytes: 1 << 20,
        receive_pieces: 2048,
        ..plain()
    };
    let mut scene = Scene::active(config.clone());
    let said = |scene: &mut Scene| scene.tcp.poll_transmit(scene.now).expect("it leaves").window;
    assert_eq!(said(&mut scene), u16::MAX);
    scene.gets(syn().ack(1).scale(3));
    let scale = scene.tcp.statistics().window_scales.expect("it is agreed").1;
    assert_eq!(u32::from(said(&mut scene)), (1 << 20) >> scale);
    let mut scene = Scene::established(config);
    assert_eq!(scene.tcp.statistics().snd_wnd, 50_000);
    scene.gets(seg().win(1000));
    assert_eq!(scene.tcp.statistics().snd_wnd, 8_000);
    assert_eq!(scene.tcp.statistics().rcv_wnd, 1 << 20);
}

fn closed() -> Scene {
    let mut scene = Scene::established(plain());
    scene.gets(seg().win(0));
    assert_eq!(scene.sends(5_000), [""; 0]);
    scene
}

/// RFC 9293, section 3.8.6.1 (MUST-36, SHLD-29, SHLD-30): probes have at least one byte. The first comes
/// after a retransmission timeout, later ones at growing intervals.
#[test]
fn a_closed_window_is_probed() {
    let mut scene = closed();
    let rto = scene.tcp.statistics().rto;
    assert_eq!(scene.after(rto - ms(1)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 1:2 ack 1"]);
    scene.gets(seg().win(0));
    assert_eq!(scene.after(rto * 2 - ms(1)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 1:2 ack 1"]);
    // The window opens, and all text is sent.
    assert_eq!(scene.answers(seg().ack(2).win(2_000)), [". 2:1002 ack 1", ". 1002:2002 ack 1"]);
}

/// RFC 9293, section 3.8.6.1 (MUST-37): as long as the peer answers, the connection stays open.
#[test]
fn a_window_may_stay_closed_for_ever() {
    let mut scene = closed();
    for _ in 0..100 {
        scene.after(ms(60_000));
        scene.gets(seg().win(0));
    }
    assert_eq!(scene.tcp.state(), State::Established);
    // If the peer does not answer either, the connection ends (section 3.8.3: R2).
    scene.after(ms(301_000));
    assert_eq!(scene.tcp.send(b"x"), Err(rxo_tcp::CallError::Failed(Failure::TimedOut)));
}

/// RFC 9293, section 3.8.6.2.1 (MUST-38): a small window is not used until the persist timer fires.
#[test]
fn a_silly_window_is_used_in_the_end() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().win(400));
    assert_eq!(scene.sends(5_000), [""; 0]);
    let rto = scene.tcp.statistics().rto;
    assert_eq!(scene.after(rto), [". 1:401 ack 1"]);
}

/// RFC 9293, section 3.8.6 (MUST-34): a peer may take back a part of its window.
#[test]
fn a_window_may_shrink() {
    let mut scene = Scene::established(plain());
    scene.sends(5_000);
    // The edge moves from 50001 back to 3001.
    assert_eq!(scene.answers(seg().ack(1001).win(2_000)), [""; 0]);
    let again = scene.after(ms(1_000));
    assert_eq!(again.first().map(String::as_str), Some(". 1001:2001 ack 1"));
    assert_eq!(scene.answers(seg().ack(5001)), [""; 0]);
}

/// RFC 9293, section 3.8.6.2.2 (MUST-39): a window update is sent only for a large step.
#[test]
fn the_window_opens_in_large_steps() {
    let mut scene = Scene::established(Config { receive_buffer_bytes: 4_000, ..plain() });
    scene.gets_aggregate((0..4).map(|n| seg().seq(1 + n * MSS).len(MSS)));
    scene.out();
    assert_eq!(scene.tcp.statistics().rcv_wnd, 0);
    scene.tcp.consume(999);
    assert_eq!(scene.out(), [""; 0]);
    scene.tcp.consume(1);
    assert_eq!(scene.out(), [". 1:1 ack 4001"]);
    assert_eq!(scene.tcp.statistics().rcv_wnd, 1000);
}

/// RFC 9293, section 3.8.6.2.2: a quarter of a small buffer is less than a segment, the smallest step of the
/// window.
#[test]
fn an_update_that_would_move_nothing_does_not_leave() {
    let mut scene = Scene::established(Config { receive_buffer_bytes: 3 * MSS, ..plain() });
    scene.gets_aggregate([seg().seq(1).len(500), seg().seq(501).len(500)]);
    assert_eq!(scene.after(ms(40)), [". 1:1 ack 1001"]);
    for _ in 0..2 {
        assert_eq!(scene.tcp.receive(&mut [0; 400]), Ok(400));
        assert_eq!(scene.out(), [""; 0]);
    }
}

/// A FIN beyond the window waits, like text.
#[test]
fn a_fin_waits_for_the_window() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().win(10));
    assert_eq!(scene.sends(10), ["P. 1:11 ack 1"]);
    scene.tcp.shutdown().unwrap();
    assert_eq!(scene.out(), [""; 0]);
    assert_eq!(scene.answers(seg().ack(11).win(10)), ["F. 11:11 ack 1"]);
    scene.gets(seg().ack(12).flags(TcpFlags::ACK));
    assert_eq!(scene.tcp.state(), State::FinWait2);
}

/// RFC 9293, section 3.8.6 (SHLD-14), and RFC 7323, section 2.4: the offered edge never moves back, whatever
/// arrives and is read; with scaling, by less than one unit.
#[test]
fn our_edge_does_not_move_back() {
    for (window_scaling, unit) in [(false, 1), (true, 8)] {
        let config = Config {
            window_scaling,
            receive_buffer_bytes: 500_001,
            receive_pieces: 4_096,
            ..plain()
        };
        let mut scene = Scene::established(config);
        let (mut seq, mut furthest) = (1, 0);
        for turn in 1_u32..2_000 {
            let bytes = turn * 7_919 % 1_000 + 1;
            scene.gets(seg().seq(seq).len(bytes));
            seq += bytes;
            if turn % 3 != 0 {
                scene.tcp.consume((turn * 104_729 % 1_500) as usize);
            }
            while let Some(sent) = scene.tcp.poll_transmit(scene.now) {
                let edge = (sent.ack - PEER_ISS) as u32 + u32::from(sent.window) * unit;
                assert!(edge + unit > furthest, "{edge} after {furthest} in turn {turn}");
                furthest = furthest.max(edge);
            }
        }
        assert!(furthest > 500_000);
    }
}

/// RFC 9293, section 3.8.6 (MUST-34, SHLD-15, SHLD-16): after a window has shrunk, no new data leaves, and
/// outstanding data inside the window is retransmitted.
#[test]
fn a_window_that_shrank_holds_back_what_is_new() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.sends(20_000).len(), 10);
    // The edge moves from 50,001 back to 7,001; the congestion window would allow more.
    assert_eq!(scene.answers(seg().ack(5_001).win(2_000)), [""; 0]);
    let seen = scene.tcp.statistics();
    assert!(seen.cwnd > seen.in_flight + MSS && seen.unsent == 10_000, "{seen:?}");
    // Only data inside the window is retransmitted.
    let again = scene.after(ms(1_000));
    let is_inside = |line: &String| line.starts_with(". 5001:6001 ");
    assert!(again.len() >= 2 && again.iter().all(is_inside), "{again:?}");
    let next = scene.answers(seg().ack(6_001).win(1_000));
    assert_eq!(next, [". 6001:7001 ack 1"]);
    // The window opens again: the rest follows, old text first.
    let rest = scene.answers(seg().ack(7_001).win(50_000));
    assert_eq!(rest.first().map(String::as_str), Some(". 7001:8001 ack 1"));
}

/// RFC 9293, section 3.8.6 (MUST-35, SHLD-17): a window that shrinks to zero is probed like a closed one, and
/// outstanding data does not end the connection while the peer answers.
#[test]
fn a_window_that_shrank_to_nothing_is_probed() {
    let mut scene = Scene::established(plain());
    scene.sends(5_000);
    scene.gets(seg().win(0));
    for _ in 0..100 {
        let probes = scene.after(ms(60_000));
        assert!(
            !probes.is_empty() && probes.iter().all(|line| line == ". 1:2 ack 1"),
            "{probes:?}"
        );
        scene.gets(seg().win(0));
    }
    assert_eq!(scene.tcp.state(), State::Established);
}

/// RFC 5681, section 4.1: the first send after a pause, which may be large, is also limited to the restart
/// window.
#[test]
fn the_first_send_after_a_pause_is_limited() {
    let mut scene = Scene::established(Config { large_send_bytes: 64_000, ..plain() });
    scene.gets(seg().win(60_000));
    scene.sends(20_000);
    scene.gets(seg().ack(10_001).win(60_000));
    scene.out();
    scene.gets(seg().ack(20_001).win(60_000));
    assert_eq!(scene.cwnd_segments(), 18);
    scene.after(ms(2_000));
    assert_eq!(scene.sends(20_000), ["P. 20001:30001 ack 1 gso 1000"]);
}

/// RFC 5961, section 3: a peer accepts a reset only at the next byte that it expects. Window probes that it
/// did not accept lie beyond that.
#[test]
fn a_reset_stands_where_a_closed_window_begins() {
    let mut scene = closed();
    let rto = scene.tcp.statistics().rto;
    assert_eq!(scene.after(rto), [". 1:2 ack 1"]);
    scene.gets(seg().win(0));
    scene.tcp.abort();
    assert_eq!(scene.out(), ["R. 1:1 ack 1"]);
}

/// The limit follows the free space of the device. Text is delayed, not lost: it leaves in more sends.
#[test]
fn an_owner_may_limit_large_sends_for_a_while() {
    let mut scene = Scene::established(Config { large_send_bytes: 4_000, ..plain() });
    scene.tcp.limit_large_sends(2_500);
    let expected = [". 1:2001 ack 1 gso 1000", "P. 2001:4001 ack 1 gso 1000"];
    assert_eq!(scene.sends(4_000), expected);
    scene.tcp.limit_large_sends(1);
    assert_eq!(scene.answers(seg().ack(4001)), [""; 0]);
    assert_eq!(scene.sends(2_000), [". 4001:5001 ack 1", "P. 5001:6001 ack 1"]);
    scene.tcp.limit_large_sends(u32::MAX);
    scene.gets(seg().ack(6001));
    assert_eq!(scene.sends(4_000), ["P. 6001:10001 ack 1 gso 1000"]);
}

#[test]
fn only_text_is_worth_waiting_for() {
    let mut scene = Scene::established(plain());
    assert!(!scene.tcp.is_text_next());
    scene.gets(seg().len(1_000));
    scene.gets(seg().seq(1_001).len(1_000));
    assert!(!scene.tcp.is_text_next(), "two segments are acknowledged");
    assert_eq!(scene.out(), [". 1:1 ack 2001"]);
    scene.tcp.send(&[0; 1_000]).unwrap();
    assert!(scene.tcp.is_text_next());
    scene.out();
    assert!(!scene.tcp.is_text_next());
}

/// RFC 9438, section 5.8: while a sender waits for its device, the congestion window does not limit it and
/// must not grow.
#[test]
fn the_window_does_not_grow_while_the_device_limits() {
    for (is_held_back, grows) in [(false, true), (true, false)] {
        let mut scene = Scene::established(plain());
        scene.sends(40_000);
        let before = scene.tcp.statistics().cwnd;
        scene.gets(seg().ack(1 + MSS));
        if is_held_back {
            scene.tcp.hold_back(scene.now);
        } else {
            scene.out();
        }
        scene.gets(seg().ack(1 + 3 * MSS));
        scene.gets(seg().ack(1 + 5 * MSS));
        let after = scene.tcp.statistics().cwnd;
        assert_eq!(after > before + 2 * MSS, grows, "{before}, then {after}");
    }
}
