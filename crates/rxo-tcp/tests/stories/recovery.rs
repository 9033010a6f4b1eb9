//! Loss recovery with SACK: RACK, tail loss probes, PRR, limited transmit, Eifel.

use rxo_tcp::{Config, RecoveryPhase};

use crate::dsl::*;

/// Returns a connection with ten outstanding segments, a full window, and more text queued.
fn ten_outstanding() -> Scene {
    let mut scene = Scene::established(with_sack());
    assert_eq!(scene.sends(40_000).len(), 10);
    scene.after(ms(10));
    scene
}

fn sack(from: u32, to: u32) -> Peer {
    seg().sack(&[(1 + from * MSS, 1 + to * MSS)])
}

/// RFC 8985, section 6.2 (b), and RFC 6675, section 5 (a): three later segments have arrived before the
/// first. RFC 9937, section 6.2 (c), like RFC 6937, section 3 (c) before: the first is retransmitted at once.
/// RFC 3042, section 2 (a, d): a new segment leaves for each of the first two SACKs. RFC 9438, section 4.6.
#[test]
fn an_overtaken_segment_is_sent_again() {
    let mut scene = ten_outstanding();
    // RFC 3042, section 2: a new segment leaves for each of the first two SACKs.
    assert_eq!(scene.answers(sack(1, 2)), [". 10001:11001 ack 1"]);
    assert_eq!(scene.answers(sack(1, 3)), [". 11001:12001 ack 1"]);
    assert_eq!(scene.answers(sack(1, 4)), [". 1:1001 ack 1"]);
    // RFC 9438, section 4.6: the threshold is 0.7 of the window.
    assert_eq!(scene.tcp.statistics().ssthresh, 7_000);
}

/// RFC 3042, section 2 (d): a duplicate without new SACK information lets no segment leave.
#[test]
fn a_duplicate_without_news_lets_nothing_leave() {
    let mut scene = ten_outstanding();
    assert_eq!(scene.answers(seg()), [""; 0]);
    assert_eq!(scene.answers(sack(1, 2)), [". 10001:11001 ack 1"]);
    assert_eq!(scene.answers(sack(1, 2)), [""; 0]);
    assert_eq!(scene.answers(sack(1, 2)), [""; 0]);
}

/// RFC 2883, section 4 (e): a first block below the acknowledgement, or inside the second, reports duplicate
/// text; any other reports held text.
#[test]
fn a_duplicate_is_known_by_what_it_covers() {
    let reported = |ack: u32, blocks: &[(u32, u32)]| {
        let mut scene = ten_outstanding();
        scene.gets(seg().ack(ack).sack(blocks));
        scene.tcp.statistics().recovery.duplicates_reported
    };
    assert_eq!(reported(2_001, &[(1, 1_001)]), 1);
    assert_eq!(reported(2_001, &[(1, 1_001), (3_001, 4_001)]), 1);
    assert_eq!(reported(1, &[(4_001, 5_001), (3_001, 6_001)]), 1);
    assert_eq!(reported(1, &[(3_001, 6_001), (3_001, 6_001)]), 1);
    assert_eq!(reported(1, &[(3_001, 6_001)]), 0);
    assert_eq!(reported(1, &[(3_001, 6_001), (8_001, 9_001)]), 0);
    assert_eq!(reported(1, &[(3_001, 6_001), (4_001, 5_001)]), 0);
}

/// RFC 8985, section 6.2 (b): RFC 2018, section 4 lists the latest change first, so that order within one
/// acknowledgement does not show reordering.
#[test]
fn the_order_of_sack_blocks_is_no_reordering() {
    let mut scene = ten_outstanding();
    scene.gets(seg().sack(&[(7_001, 8_001), (5_001, 6_001), (3_001, 4_001)]));
    assert_eq!(scene.tcp.statistics().recovery.reordered, 0);
    scene.gets(seg().sack(&[(1_001, 2_001), (7_001, 8_001), (5_001, 6_001), (3_001, 4_001)]));
    assert_eq!(scene.tcp.statistics().recovery.reordered, 1);
}

/// RFC 8985, section 7.2: the probe comes after two round trips. If one segment is outstanding, a peer that
/// delays its acknowledgement gets 200 ms more.
#[test]
fn a_single_segment_is_probed_later() {
    for (bytes, timeout) in [(2 * MSS, 600), (MSS, 800)] {
        let mut scene = Scene::active(with_sack());
        scene.out();
        scene.after(ms(300));
        scene.gets(syn().ack(1).sack_permitted());
        scene.out();
        assert!(scene.tcp.statistics().rto > ms(800));
        scene.sends(bytes);
        assert_eq!(scene.after(ms(timeout - 1)), [""; 0]);
        assert_eq!(scene.after(ms(1)).len(), 1);
        assert_eq!(scene.cwnd_segments(), 10);
    }
}

/// RFC 9937, section 6.2 (a), like RFC 6937, section 3 (a, d) before: the data in flight falls to the
/// threshold, then one segment leaves for each that arrives; the window ends at the threshold. RFC 6675,
/// sections 4 and 5 (c, d).
#[test]
fn the_window_comes_down_evenly() {
    let mut scene = ten_outstanding();
    (2..=4).for_each(|to| drop(scene.answers(sack(1, to))));
    assert_eq!(scene.tcp.statistics().in_flight, 9_000);
    let sent: Vec<usize> = (5..=10).map(|to| scene.answers(sack(1, to)).len()).collect();
    assert_eq!(sent, [0, 0, 1, 1, 1, 1]);
    assert_eq!(scene.tcp.statistics().in_flight, 7_000);
    scene.gets(seg().ack(10_001));
    assert_eq!(scene.cwnd_segments(), 7);
}

/// RFC 8985, section 6.2 (a): with fewer than three later segments, time decides.
#[test]
fn one_overtaking_segment_is_enough_after_a_while() {
    let mut scene = ten_outstanding();
    scene.answers(sack(1, 2));
    // The wait is a quarter of the minimum round-trip time, which was 10 ms.
    let waited = scene.after(ms(2));
    assert_eq!(waited, [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 1:1001 ack 1"]);
}

/// RFC 8985, section 6.2 (e): a lost retransmission is also detected by time.
#[test]
fn a_lost_retransmission_is_found() {
    let mut scene = ten_outstanding();
    assert_eq!(scene.answers(sack(1, 4))[0], ". 1:1001 ack 1");
    scene.after(ms(10));
    // A segment sent after it arrives, a round trip later.
    let sent = scene.answers(sack(1, 10));
    assert!(sent.len() > 1, "{sent:?}");
    scene.after(ms(15));
    let again = scene.answers(sack(1, 11));
    assert_eq!(again[0], ". 1:1001 ack 1");
}

/// RFC 8985, section 6.2 (e), with timestamps: while the first segment is missing, the peer echoes a segment
/// before it (RFC 7323, section 4.3). Such an echo does not show that later retransmissions were spurious.
#[test]
fn a_lost_retransmission_is_found_whatever_is_echoed() {
    let mut scene = Scene::established(Config { timestamps: true, ..with_sack() });
    // With timestamps a segment holds 988 bytes.
    let at = |segments: u32| 1 + segments * 988;
    assert_eq!(scene.sends(20_000).len(), 10);
    scene.after(ms(10));
    let sack = |blocks: &[(u32, u32)]| seg().ts(1, 10).sack(blocks);
    scene.gets(sack(&[(at(1), at(4))]));
    scene.gets(sack(&[(at(5), at(8)), (at(1), at(4))]));
    assert_eq!(scene.out()[..2], [". 1:989 ack 1", ". 3953:4941 ack 1"]);
    scene.after(ms(10));
    // The later retransmission has arrived, a round trip after it left; the first has not.
    let again = scene.answers(sack(&[(at(1), at(8))]));
    assert_eq!(again[0], ". 1:989 ack 1");
}

/// RFC 8985, section 7.2: the probe leaves two round trips after the last acknowledgement. RFC 8985, section
/// 7.3 (a): it is the last segment.
#[test]
fn a_lost_tail_is_probed() {
    let mut scene = Scene::established(with_sack());
    scene.sends(3_000);
    assert_eq!(scene.after(ms(19)), [""; 0]);
    assert_eq!(scene.after(ms(1)), ["P. 2001:3001 ack 1"]);
    // The SACK for the probe shows the missing segments, without a retransmission timeout.
    scene.after(ms(10));
    let sent = scene.answers(seg().sack(&[(2001, 3001)]));
    let rest = scene.after(ms(20));
    // One segment leaves first (RFC 9937, section 6.2 (c)), then one for each that arrives.
    assert_eq!([sent, rest].concat(), [". 1:1001 ack 1"]);
    assert_eq!(scene.answers(seg().ack(1_001).sack(&[(2001, 3001)])), [". 1001:2001 ack 1"]);
}

/// RFC 8985, section 7.4.2: a probe that repaired a loss counts as a loss, any other does not. RFC 2883,
/// section 4 (e).
#[test]
fn a_repaired_loss_reduces_the_window() {
    let after_probe = |last: &[Peer]| {
        let mut scene = Scene::established(with_sack());
        scene.sends(3_000);
        assert_eq!(scene.after(ms(20)).len(), 1);
        scene.after(ms(10));
        for peer in last {
            scene.gets(peer.clone());
        }
        scene.sends(1_000);
        scene.gets(seg().ack(4_001));
        scene.cwnd_segments()
    };
    assert!(after_probe(&[seg().ack(3_001)]) < 10);
    let with_duplicate = seg().ack(3_001).sack(&[(2_001, 3_001)]);
    assert!(after_probe(&[seg().ack(3_001), with_duplicate]) >= 10);
}

/// RFC 6675, section 5.1, and RFC 2018, section 5 (a): data that the peer holds is not retransmitted.
#[test]
fn a_timeout_leaves_out_what_the_peer_holds() {
    let mut scene = ten_outstanding();
    scene.gets(sack(9, 10));
    let sent = scene.after(ms(400));
    assert!(sent.contains(&". 1:1001 ack 1".to_string()), "{sent:?}");
    let sent = scene.answers(sack(9, 10).ack(8_001));
    assert_eq!(sent[0], ". 8001:9001 ack 1");
    assert!(!sent.iter().any(|line| line.contains("9001:10001")), "{sent:?}");
}

/// RFC 3522 and 4015; RFC 9438, section 4.9: the acknowledgement after a spurious retransmission restores the
/// congestion state.
#[test]
fn a_needless_timeout_is_forgiven() {
    let mut scene = Scene::established(Config { timestamps: true, ..plain() });
    scene.sends(20_000);
    let before = scene.tcp.statistics();
    assert!(scene.after(ms(200))[0].starts_with(". 1:"));
    assert_eq!(scene.cwnd_segments(), 1);
    // It echoes a timestamp from before the timeout: 10 ms after the SYN.
    let mss = scene.tcp.statistics().mss;
    scene.gets(seg().ack(1 + mss).ts(300, 10));
    let after = scene.tcp.statistics();
    assert!(after.cwnd >= before.cwnd, "{after:?}");
    assert_eq!(after.ssthresh, before.ssthresh);

    let mut scene = Scene::established(Config { timestamps: true, ..plain() });
    scene.sends(20_000);
    scene.after(ms(200));
    scene.gets(seg().ack(1 + mss).ts(300, 210));
    assert!(scene.cwnd_segments() <= 3);
}

/// RFC 2018, section 5 (b): invalid blocks are ignored.
#[test]
fn blocks_that_cannot_be_do_nothing() {
    let mut scene = ten_outstanding();
    let wild = [(90_001, 95_001), (5_001, 5_001), (9_001, 4_001), (u32::MAX - 5, 900)];
    assert_eq!(scene.answers(seg().sack(&wild)), [""; 0]);
    // One block reaches beyond SND.NXT, the other begins before SND.UNA.
    assert_eq!(scene.answers(seg().sack(&[(5_001, 10_002)])), [""; 0]);
    let mut seen = scene.tcp.statistics();
    assert_eq!((seen.in_flight, seen.recovery.sacked), (10_000, 0));
    scene.gets(seg().ack(2_001).sack(&[(1_001, 5_001)]));
    seen = scene.tcp.statistics();
    assert_eq!((seen.in_flight, seen.recovery.sacked), (8_000, 0));
}

/// RFC 6675, section 5 (b): lost data is retransmitted before new data.
#[test]
fn what_is_lost_leaves_before_what_is_new() {
    let mut scene = ten_outstanding();
    // The first three segments are lost, and capacity for several becomes free at once.
    let sent = scene.answers(seg().sack(&[(3_001, 10_001)]));
    let expected = [". 1:1001 ack 1", ". 1001:2001 ack 1", ". 2001:3001 ack 1"];
    let lost = sent.len().min(3);
    assert!(lost > 0 && sent[..lost] == expected[..lost], "{sent:?}");
}

/// RFC 2018, section 8 (a, b), and RFC 6675, section 3: a peer may discard data that it reported as held.
/// Therefore the data is kept until it is acknowledged, and retransmitted after a timeout.
#[test]
fn a_peer_may_throw_away_what_it_held() {
    let mut scene = ten_outstanding();
    scene.gets(sack(1, 10));
    assert_eq!(scene.out()[0], ". 1:1001 ack 1");
    // The first segment arrives, and the peer should acknowledge everything, but does not.
    scene.gets(seg().ack(1_001));
    let sent = [scene.out(), scene.after(ms(1_000))].concat();
    assert!(sent.contains(&". 1001:2001 ack 1".to_string()), "{sent:?}");
    let mut acked = 2_001;
    while acked < 10_001 {
        let sent = scene.answers(seg().ack(acked));
        let next = format!(". {acked}:");
        let later = scene.after(ms(2_000));
        assert!([sent, later].concat().iter().any(|line| line.starts_with(&next)), "{next}");
        acked += MSS;
    }
}

/// RFC 8985, section 6.2 (c): a spurious retransmission doubles the wait.
#[test]
fn a_reported_duplicate_makes_the_wait_longer() {
    let mut scene = ten_outstanding();
    scene.answers(sack(1, 2));
    assert_eq!(scene.after(ms(3)), [". 1:1001 ack 1"]);
    // The first segment was only late, and then arrives twice.
    scene.gets(seg().ack(2_001));
    scene.gets(seg().ack(2_001).sack(&[(1, 1_001)]));
    scene.gets(seg().ack(10_001));
    let start = 10_001;
    scene.after(ms(10));
    scene.gets(seg().ack(start + 2_000));
    scene.out();
    let flight = scene.tcp.statistics();
    let una = start + 2_000;
    assert!(flight.in_flight >= 4_000, "{flight:?}");
    scene.after(ms(10));
    scene.gets(seg().ack(una).sack(&[(una + MSS, una + 2 * MSS)]));
    let lost = format!(". {una}:{} ack 1", una + MSS);
    let early = [scene.out(), scene.after(ms(4))].concat();
    assert!(!early.contains(&lost), "{early:?}");
    let late = scene.after(ms(20));
    assert!(late.contains(&lost), "{late:?}");
}

/// RFC 8985, section 7.3 (b): after a probe the retransmission timer runs, not another probe.
#[test]
fn a_probe_is_followed_by_the_timeout() {
    let mut scene = Scene::established(with_sack());
    scene.sends(3_000);
    assert_eq!(scene.after(ms(20)), ["P. 2001:3001 ack 1"]);
    let rto = scene.tcp.statistics().rto;
    assert_eq!(scene.after(rto - ms(1)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 1:1001 ack 1"]);
}

/// RFC 5681, section 4.3: two losses in one flight reduce the window once, even if the second is detected
/// after the first was repaired.
#[test]
fn two_losses_of_a_flight_count_once() {
    let mut scene = ten_outstanding();
    scene.gets(sack(1, 5));
    assert!(scene.out().contains(&". 1:1001 ack 1".to_owned()));
    scene.after(ms(10));
    // All segments except the second have arrived, including those sent meanwhile.
    let seen = scene.tcp.statistics();
    let end = 1 + (seen.snd_nxt - seen.snd_una) as u32;
    let again = scene.answers(seg().ack(5_001).sack(&[(6_001, end)]));
    assert!(again.contains(&". 5001:6001 ack 1".to_owned()), "{again:?}");
    scene.after(ms(10));
    let seen = scene.tcp.statistics();
    scene.gets(seg().ack(5_001 + (seen.snd_nxt - seen.snd_una) as u32));
    assert_eq!(scene.tcp.statistics().ssthresh, 7_000);
}

/// Returns a connection without timestamps whose timer has fired, with ten outstanding segments and more text
/// queued. The first segment has been retransmitted.
fn timed_out(config: Config) -> Scene {
    let mut scene = Scene::established(config);
    assert_eq!(scene.sends(40_000).len(), 10);
    // With SACK a tail loss probe leaves first, with new text.
    let sent = scene.after(ms(250));
    assert_eq!(sent.last().map(String::as_str), Some(". 1:1001 ack 1"));
    scene
}

/// Returns the first sequence number of a segment's text.
fn first_of(line: &str) -> u32 {
    let range = line.split(' ').nth(1).and_then(|range| range.split_once(':'));
    range.and_then(|(start, _)| start.parse().ok()).expect("a line with a range")
}

/// RFC 5682, section 2: the originals arrive late. Two new segments probe for that; their ACKs restore the
/// congestion state, and no more is retransmitted.
#[test]
fn a_delay_is_not_a_loss() {
    for config in [plain(), with_sack()] {
        let mut scene = timed_out(config);
        assert_eq!(scene.tcp.statistics().ssthresh, 7_000);
        let new = scene.answers(seg().ack(1_001));
        assert_eq!(new.len(), 2);
        assert!(new.iter().all(|line| first_of(line) > 10_000), "{new:?}");
        let sent = scene.answers(seg().ack(2_001));
        let after = scene.tcp.statistics();
        assert!(after.ssthresh > 1_000_000 && after.cwnd >= 10_000, "{after:?}");
        assert!(sent.iter().all(|line| !line.starts_with(". 2001:")), "{sent:?}");
        let sent = scene.answers(seg().ack(10_001));
        assert!(first_of(&sent[0]) > 10_000, "{sent:?}");
    }
}

/// RFC 5682, section 2.1, step 3 (a): duplicates show that the rest is lost, and it is retransmitted.
#[test]
fn a_loss_is_still_a_loss() {
    for config in [plain(), with_sack()] {
        let mut scene = timed_out(config);
        let new = scene.answers(seg().ack(1_001));
        assert!(new.len() == 2 && new.iter().all(|line| first_of(line) > 10_000), "{new:?}");
        let sent = scene.answers(seg().ack(1_001));
        assert_eq!(sent.first().map(String::as_str), Some(". 1001:2001 ack 1"), "{sent:?}");
        assert_eq!(scene.tcp.statistics().ssthresh, 7_000);
    }
}

/// RFC 5682, section 2.1, step 2 (b): without new data to send, the detection ends and lost data is
/// retransmitted.
#[test]
fn without_new_text_the_old_goes() {
    let mut scene = Scene::established(plain());
    scene.sends(5_000);
    scene.after(ms(250));
    assert_eq!(scene.answers(seg().ack(1_001)), [". 1001:2001 ack 1", ". 2001:3001 ack 1"]);
    scene.gets(seg().ack(3_001));
    assert_eq!(scene.tcp.statistics().ssthresh, 3_500);
}

/// RFC 8985, section 7.2: a probe is never later than the timeout. A round trip of 10 ms gives a timeout of
/// 200 ms, and a probe for a single segment after 220 ms. The probe leaves after 200 ms, and the timeout
/// starts anew.
#[test]
fn a_probe_is_not_later_than_the_timeout() {
    let mut scene = Scene::established(Config { sack: true, ..plain() });
    scene.sends(10);
    assert_eq!(scene.after(ms(199)), [""; 0]);
    assert_eq!(scene.after(ms(1)), ["P. 1:11 ack 1"]);
    assert_eq!(scene.cwnd_segments(), 10);
    assert_eq!(scene.after(ms(199)), [""; 0]);
    assert_eq!(scene.after(ms(1)), ["P. 1:11 ack 1"]);
    assert_eq!(scene.cwnd_segments(), 1);
}

/// RFC 8985, section 7.3: new data, if there is any, is the probe; the Nagle algorithm does not delay it.
#[test]
fn little_new_data_is_a_probe() {
    let mut scene = Scene::established(Config { sack: true, ..plain() });
    scene.sends(2_000);
    assert_eq!(scene.sends(500), [""; 0]);
    assert_eq!(scene.after(ms(20)), ["P. 2001:2501 ack 1"]);
}

/// Checks the recovery fields of `Statistics`, step by step.
#[test]
fn statistics_say_what_is_lost_and_in_which_phase() {
    let mut scene = ten_outstanding();
    let seen = |scene: &Scene| {
        let seen = scene.tcp.statistics().recovery;
        (seen.phase, seen.sacked / MSS, seen.lost / MSS, seen.retransmitted / MSS)
    };
    assert_eq!(seen(&scene), (RecoveryPhase::Open, 0, 0, 0));
    scene.answers(sack(1, 2));
    assert_eq!(seen(&scene), (RecoveryPhase::Disorder, 1, 0, 0));
    scene.gets(sack(1, 4));
    assert_eq!(seen(&scene), (RecoveryPhase::Recovery, 3, 1, 0));
    scene.out();
    assert_eq!(seen(&scene), (RecoveryPhase::Recovery, 3, 0, 1));
    scene.answers(seg().ack(11_001));
    scene.answers(seg().ack(11_001).sack(&[(1, 1001)]));
    assert_eq!(scene.tcp.statistics().recovery.duplicates_reported, 1);
    let mut scene = Scene::established(with_sack());
    scene.sends(MSS);
    scene.after(ms(500));
    assert_eq!(seen(&scene).0, RecoveryPhase::Loss);
    assert_eq!(scene.tcp.statistics().recovery.backoff, 1);
}

/// RFC 9937, section 6.2 (b, c): with most of a flight lost, one segment leaves on entry, and one for each
/// that arrives while further losses show. One more leaves only for a safe acknowledgement.
#[test]
fn no_more_leave_than_arrive_until_that_is_safe() {
    let mut scene = ten_outstanding();
    scene.answers(sack(7, 8));
    scene.answers(sack(7, 9));
    assert_eq!(scene.answers(sack(7, 10)), [". 1:1001 ack 1"]);
    assert_eq!(scene.answers(seg().ack(1_001).sack(&[(7_001, 10_001)])).len(), 2);
}

/// RFC 6298, section 3: an acknowledgement that also covers retransmitted data gives no sample, because the
/// data after the gap waited for it.
#[test]
fn an_ack_beyond_a_retransmission_is_no_sample() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.tcp.statistics().srtt, Some(ms(10)));
    scene.sends(5_000);
    scene.after(ms(10));
    for _ in 0..3 {
        scene.gets(seg());
    }
    assert_eq!(scene.out()[0], ". 1:1001 ack 1");
    scene.after(ms(150));
    scene.gets(seg().ack(5_001));
    assert_eq!(scene.tcp.statistics().srtt, Some(ms(10)));
    // Data that was sent once, and is acknowledged alone, gives a sample.
    scene.sends(1_000);
    scene.after(ms(18));
    scene.gets(seg().ack(6_001));
    assert_eq!(scene.tcp.statistics().srtt, Some(ms(11)));
}
