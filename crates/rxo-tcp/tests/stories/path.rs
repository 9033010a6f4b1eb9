//! The path: reports of routers, the limits of their effect, and discovery without reports (RFC 1191, 8201,
//! 5927, 4821, 5461).

use rxo_tcp::{CallError, Config, Connection, Events, Failure, State};
use rxo_wire::{FlowKey, SeqNumber};

use crate::dsl::*;

/// Returns settings with full segments of 1460 bytes and no options.
fn ethernet() -> Config {
    Config { maximum_segment_size: 1460, ..with_sack() }
}

fn too_big(scene: &mut Scene, from_una: u32, mtu: u32) {
    let seq = scene.tcp.statistics().snd_una + from_una;
    scene.tcp.on_packet_too_big(scene.now, seq, mtu);
}

/// Returns a connection on which full segments are known to pass.
fn with_full_segments_passed() -> Scene {
    let mut scene = Scene::established(ethernet());
    scene.sends(2 * 1460);
    scene.gets(seg().ack(1 + 2 * 1460));
    scene
}

/// RFC 9293, section 3.9.2.2 (MUST-54): a report is applied. RFC 1191, sections 3 and 6.5: the data is sent
/// again in segments that fit, one until it is acknowledged, and the congestion window recovers at once.
#[test]
fn what_is_too_big_is_sent_again_smaller() {
    let mut scene = Scene::established(ethernet());
    assert_eq!(scene.sends(10 * 1460).len(), 10);
    let before = scene.tcp.statistics();
    too_big(&mut scene, 0, 1_400);
    assert_eq!(scene.tcp.statistics().mss, 1_360);
    assert_eq!(scene.out(), [". 1:1361 ack 1"]);
    scene.after(ms(10));
    assert_eq!(scene.answers(seg().ack(1_361)), [". 1361:2721 ack 1", ". 2721:4081 ack 1"]);
    let after = scene.tcp.statistics();
    assert_eq!((after.path.too_big_taken, after.path.too_big_ignored), (1, 0));
    assert_eq!(after.ssthresh, before.ssthresh);
    // The other nine segments are reported as well, without further effect.
    for n in 1..10 {
        too_big(&mut scene, n * 1_460 - 1_360, 1_400);
    }
    assert_eq!(scene.tcp.statistics().path.too_big_ignored, 9);
}

/// RFC 5681, section 3.1: a segment too big is no sign of congestion, but a timeout after it is.
#[test]
fn a_timeout_after_a_report_is_congestion() {
    let mut scene = Scene::established(ethernet());
    scene.sends(10 * 1460);
    too_big(&mut scene, 0, 1_400);
    let before = scene.tcp.statistics();
    assert_eq!(scene.out(), [". 1:1361 ack 1"]);
    assert_eq!(scene.after(ms(300)), [". 1:1361 ack 1"]);
    let after = scene.tcp.statistics();
    assert!(after.ssthresh < before.ssthresh && after.ssthresh <= 10 * 1_460, "{after:?}");
}

#[test]
fn all_of_it_arrives_smaller() {
    let mut scene = Scene::established(ethernet());
    scene.sends(10 * 1460);
    too_big(&mut scene, 0, 1_000);
    let mut acked = 1;
    while acked < 1 + 10 * 1460 {
        let sent = scene.after(ms(10));
        assert!(!sent.is_empty(), "it stops at {acked}");
        for line in sent {
            let range = line.split_whitespace().nth(1).expect("a range");
            let (start, end) = range.split_once(':').expect("a range");
            let (start, end): (u32, u32) = (start.parse().unwrap(), end.parse().unwrap());
            assert!(end - start <= 960 && start <= acked, "{line}");
            acked = acked.max(end);
        }
        scene.gets(seg().ack(acked));
    }
}

/// RFC 5927, section 4.1: a report counts only if it names data in flight.
#[test]
fn a_report_about_nothing_in_flight_is_ignored() {
    let mut scene = Scene::established(ethernet());
    scene.sends(3 * 1460);
    let all = scene.tcp.statistics();
    for seq in [all.snd_nxt, all.snd_nxt + 1, SeqNumber(all.snd_una.0.wrapping_sub(1))] {
        scene.tcp.on_packet_too_big(scene.now, seq, 1_000);
    }
    let after = scene.tcp.statistics();
    assert_eq!((after.mss, after.path.too_big_ignored), (1_460, 3));
    scene.gets(seg().ack(1 + 3 * 1460));
    too_big(&mut scene, 0, 1_000);
    assert_eq!(scene.tcp.statistics().mss, 1_460);
}

/// RFC 5927, section 7.2: no report lowers the packet size below 576 bytes; RFC 8200, section 5: nor below
/// 1280 for IPv6.
#[test]
fn a_size_that_cannot_be_is_not_believed() {
    let mut scene = Scene::established(ethernet());
    scene.sends(1460);
    too_big(&mut scene, 0, 68);
    assert_eq!(scene.tcp.statistics().mss, 536);
    too_big(&mut scene, 0, 68);
    assert_eq!(scene.tcp.statistics().mss, 536);

    let v6 = FlowKey::v6(&[7; 32], 0x1388_0050, 0);
    let mut scene = Scene::established(ethernet());
    let mut over_v6 = Connection::open_active(ethernet(), v6, SECRET, scene.now).unwrap();
    std::mem::swap(&mut scene.tcp, &mut over_v6);
    scene.learn_iss_of_ours();
    scene.out();
    scene.gets(syn().mss(Some(1440)).ack(1).sack_permitted());
    scene.sends(1440);
    too_big(&mut scene, 0, 1_279);
    assert_eq!(scene.tcp.statistics().mss, 1_440);
    too_big(&mut scene, 0, 1_280);
    assert_eq!(scene.tcp.statistics().mss, 1_220);
}

/// RFC 5927, section 7.2: once larger segments have passed, a report waits for a timeout.
#[test]
fn a_late_report_waits_for_a_timeout() {
    let mut scene = with_full_segments_passed();
    scene.sends(1460);
    too_big(&mut scene, 0, 1_300);
    assert_eq!(scene.tcp.statistics().mss, 1_460);
    // A probe comes first, then the timeout.
    scene.after(ms(450));
    assert_eq!(scene.tcp.statistics().mss, 1_260);
    assert_eq!(scene.tcp.statistics().path.too_big_taken, 1);
}

/// An acknowledgement shows that such a report was forged.
#[test]
fn an_attackers_report_is_refuted() {
    let mut scene = with_full_segments_passed();
    scene.sends(1460);
    too_big(&mut scene, 0, 1_300);
    scene.gets(seg().ack(1 + 3 * 1460));
    scene.sends(1460);
    scene.after(ms(250));
    let after = scene.tcp.statistics();
    assert_eq!((after.mss, after.path.too_big_taken, after.path.too_big_ignored), (1_460, 0, 1));
}

/// Ten minutes after a report, one larger segment is tried (RFC 1191, section 6.3).
#[test]
fn a_larger_segment_is_tried_later() {
    let mut scene = Scene::established(ethernet());
    scene.sends(1460);
    too_big(&mut scene, 0, 1_300);
    scene.out();
    scene.gets(seg().ack(1_461));
    scene.after(ms(599_000));
    assert_eq!(scene.sends(1_460), [". 1461:2721 ack 1"]);
    assert_eq!(scene.answers(seg().ack(2_721)), ["P. 2721:2921 ack 1"]);
    scene.gets(seg().ack(2_921));
    scene.after(ms(2_000));
    assert_eq!(scene.sends(4_000)[..2], [". 2921:4381 ack 1", ". 4381:5641 ack 1"]);
    assert_eq!(scene.tcp.statistics().mss, 1_260);
    scene.gets(seg().ack(4_381));
    let after = scene.tcp.statistics();
    assert_eq!((after.mss, after.path.raised), (1_460, 1));
}

/// A lost trial costs one segment, and the next trial comes ten minutes later.
#[test]
fn a_trial_that_does_not_pass_changes_nothing() {
    let mut scene = Scene::established(ethernet());
    scene.sends(1460);
    too_big(&mut scene, 0, 1_300);
    scene.out();
    scene.gets(seg().ack(1_461));
    scene.after(ms(601_000));
    assert_eq!(scene.sends(7_000), [". 1461:2921 ack 1", ". 2921:4181 ack 1"]);
    scene.after(ms(10));
    scene.gets(seg().ack(1_461).sack(&[(2_921, 4_181)]));
    // The lost segment may be late for a quarter of a round trip; meanwhile new text leaves.
    assert_eq!(scene.after(ms(10)), [". 4181:5441 ack 1", ". 1461:2721 ack 1"]);
    let rest = scene.answers(seg().ack(2_721).sack(&[(2_921, 4_181)]));
    assert_eq!(rest[0], ". 2721:2921 ack 1");
    scene.gets(seg().ack(5_441));
    let after = scene.tcp.statistics();
    assert_eq!((after.mss, after.path.raised), (1_260, 0));
    assert!([rest, scene.out()].concat().contains(&". 5441:6701 ack 1".to_owned()));
}

/// RFC 2923, section 2.1; RFC 4821, section 7.7: full segments vanish without a report.
#[test]
fn a_black_hole_is_found_by_timeouts() {
    let mut scene = Scene::established(ethernet());
    let start = scene.now;
    scene.sends(4 * 1460);
    let mut sent = Vec::new();
    while scene.tcp.statistics().path.black_holes == 0 {
        sent = scene.after(ms(10));
    }
    // The third timeout, after 200, 400 and 800 ms and a tail loss probe.
    assert_eq!(sent, [". 1:1241 ack 1"]);
    assert!((ms(1_400)..ms(1_500)).contains(&(scene.now - start)), "{:?}", scene.now - start);
    assert_eq!(scene.tcp.statistics().path.black_holes, 1);
    scene.gets(seg().ack(1_241));
    // A segment passes: the rest is sent in small segments, then a full one is tried.
    let mut acked = 1_241;
    while acked < 5_841 {
        let sent = scene.out();
        assert!(!sent.is_empty());
        acked = 5_841.min(acked + 1_240 * sent.len() as u32);
        scene.after(ms(10));
        scene.gets(seg().ack(acked));
    }
    let trial = scene.sends(5_000);
    assert_eq!(trial[0], ". 5841:7301 ack 1");
    assert_eq!(scene.tcp.statistics().mss, 1_240);
}

/// If the peer was only unreachable for a while, full segments return with its first answers.
#[test]
fn a_path_that_was_only_interrupted_is_as_before() {
    let mut scene = Scene::established(ethernet());
    scene.sends(1460);
    scene.after(ms(1_700));
    assert_eq!(scene.tcp.statistics().mss, 1_240);
    scene.gets(seg().ack(1_461));
    scene.sends(1460);
    scene.gets(seg().ack(2_921));
    let after = scene.tcp.statistics();
    assert_eq!((after.mss, after.path.raised), (1_460, 1));
}

/// Losses of small segments show nothing about the segment size.
#[test]
fn small_segments_do_not_show_a_black_hole() {
    let mut scene = Scene::established(ethernet());
    scene.sends(700);
    scene.after(ms(30_000));
    assert_eq!(scene.tcp.statistics().mss, 1_460);
}

/// RFC 9293, section 3.9.2.2 (MUST-56, SHLD-25); RFC 5927, section 5.2: no ICMP error ends an open
/// connection, and the application is notified of each.
#[test]
fn an_open_connection_survives_errors() {
    let mut scene = Scene::established(plain());
    scene.sends(1_000);
    let una = scene.tcp.statistics().snd_una;
    for is_hard in [false, true] {
        scene.tcp.on_unreachable(una, is_hard);
        assert_eq!(scene.tcp.state(), State::Established);
        assert_eq!(scene.tcp.take_events(), Events::UNREACHABLE);
    }
    scene.gets(seg().ack(1_001));
    scene.tcp.on_unreachable(una, true);
    assert!(!scene.tcp.take_events().contains(Events::UNREACHABLE));
    assert_eq!(scene.tcp.statistics().path.unreachable, 2);
}

/// RFC 9293, section 3.9.2.2 (MUST-56, SHLD-26); RFC 5461, section 4: a connection that is opening survives
/// soft errors, and a hard error ends it.
#[test]
fn a_hard_error_ends_an_opening() {
    let mut scene = Scene::active(plain());
    scene.out();
    let iss = scene.tcp.statistics().snd_una;
    scene.tcp.on_unreachable(iss + 1, true);
    scene.tcp.on_unreachable(iss, false);
    assert!(matches!(scene.tcp.state(), State::SynSent(_)));
    scene.tcp.on_unreachable(iss, true);
    assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::Failed(Failure::Refused)));
}

/// RFC 1191, section 6.2: another connection reuses the discovered size; when it is old, a larger segment is
/// tried.
#[test]
fn a_path_that_is_known_limits_the_first_segment() {
    let mut scene = Scene::active(ethernet());
    let old = scene.now + ms(5_000);
    scene.tcp.know_path(1_400, old);
    scene.out();
    scene.gets(syn().mss(Some(1460)).ack(1).sack_permitted());
    scene.out();
    assert_eq!((scene.tcp.statistics().mss, scene.tcp.path_mtu()), (1_360, Some(1_400)));
    assert_eq!(scene.sends(2_720), [". 1:1361 ack 1", "P. 1361:2721 ack 1"]);
    scene.gets(seg().ack(2_721));
    scene.after(ms(5_000));
    assert_eq!(scene.sends(1_460), ["P. 2721:4181 ack 1"]);
    scene.gets(seg().ack(4_181));
    assert_eq!((scene.tcp.statistics().mss, scene.tcp.path_mtu()), (1_460, None));
    assert!(scene.tcp.take_events().contains(Events::PATH_CHANGED));
}

/// A path MTU is reported to other connections if a router has named it, or a larger segment was tried and
/// lost. A suspected black hole is not reported.
#[test]
fn what_is_known_of_the_path_is_told() {
    let mut scene = Scene::established(ethernet());
    scene.sends(1460);
    assert_eq!(scene.tcp.path_mtu(), None);
    too_big(&mut scene, 0, 1_300);
    assert!(scene.tcp.take_events().contains(Events::PATH_CHANGED));
    assert_eq!(scene.tcp.path_mtu(), Some(1_300));

    let mut scene = Scene::established(ethernet());
    scene.sends(1460);
    scene.after(ms(1_700));
    assert_eq!(scene.tcp.statistics().path.black_holes, 1);
    assert!(!scene.tcp.take_events().contains(Events::PATH_CHANGED));
    // The smaller segment passes, and the full one tried then does not.
    scene.gets(seg().ack(1_461));
    assert_eq!(scene.sends(1460), ["P. 1461:2921 ack 1"]);
    scene.after(ms(1_000));
    assert!(scene.tcp.take_events().contains(Events::PATH_CHANGED));
    assert_eq!(scene.tcp.path_mtu(), Some(1_280));
}
