//! Timers: retransmission, giving up, keep-alive (RFC 6298; RFC 9293, sections 3.8.3 and 3.8.4).

use rxo_tcp::{CallError, Config, Events, Failure, KeepAlive, State};

use crate::dsl::*;

/// RFC 6298, sections 5.1, 5.4, 5.5 and 5.6: the earliest segment is retransmitted, and the timeout doubles.
/// RFC 9293, section 3.8.2 (MUST-19). RFC 5681, section 3.1 (e): slow start begins with one segment.
#[test]
fn the_earliest_segment_is_sent_again() {
    let mut scene = Scene::established(plain());
    scene.sends(3_000);
    let rto = scene.tcp.statistics().rto;
    assert_eq!(rto, ms(200));
    assert_eq!(scene.after(rto), [". 1:1001 ack 1"]);
    assert_eq!(scene.cwnd_segments(), 1);
    assert_eq!(scene.after(rto * 2 - ms(1)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 1:1001 ack 1"]);
    // RFC 5681, section 3.1: slow start from one segment.
    let both = scene.answers(seg().ack(1001));
    assert_eq!(both, [". 1001:2001 ack 1", "P. 2001:3001 ack 1"]);
}

/// RFC 6298, sections 5.2 and 5.3: new acknowledgements restart the timer, the last one stops it.
#[test]
fn progress_restarts_the_timer() {
    let mut scene = Scene::established(plain());
    scene.sends(3_000);
    scene.after(ms(150));
    scene.gets(seg().ack(1001));
    assert_eq!(scene.after(ms(150)), [""; 0]);
    scene.gets(seg().ack(3001));
    assert_eq!(scene.after(ms(10_000)), [""; 0]);

    // The timer restarts and does not stop: a full timeout after the ACK, the next segment leaves.
    let mut scene = Scene::established(plain());
    scene.sends(3_000);
    scene.after(ms(150));
    scene.gets(seg().ack(1001));
    let rto = scene.tcp.statistics().rto;
    assert_eq!(scene.after(rto - ms(1)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 1001:2001 ack 1"]);
}

/// RFC 9293, section 3.8.1 (MUST-18): the timeout follows the formulas of RFC 6298, sections 2.2 and 2.3,
/// sample by sample.
#[test]
fn the_timeout_follows_the_round_trips() {
    let mut scene = Scene::established(Config { min_rto: ms(1), ..plain() });
    // The handshake took 10 ms: RTTVAR is half of that.
    let (mut srtt, mut rttvar) = (ms(10), ms(5));
    for (number, sample) in (1..).zip([90, 90, 30, 10, 200].map(ms)) {
        assert_eq!(scene.tcp.statistics().rto, srtt + rttvar * 4);
        scene.sends(1_000);
        // No timer fires, because retransmitted data is not measured.
        scene.now = scene.now + sample;
        scene.gets(seg().ack(1 + number * 1_000));
        rttvar = (rttvar * 3 + srtt.abs_diff(sample)) / 4;
        srtt = (srtt * 7 + sample) / 8;
        assert_eq!(scene.tcp.statistics().srtt, Some(srtt));
    }
}

/// RFC 9293, section 3.8.1 (MUST-18), and RFC 6298, section 3 (Karn): an ACK that covers retransmitted data
/// gives no sample, even if it covers other data that was sent once. That data may have waited at the
/// receiver for the lost segment.
#[test]
fn a_retransmission_among_others_is_not_measured() {
    for config in [plain(), with_sack()] {
        let mut scene = Scene::established(config);
        scene.sends(3_000);
        let before = scene.tcp.statistics().srtt;
        let sent = scene.after(ms(400));
        assert!(sent.contains(&". 1:1001 ack 1".to_owned()), "{sent:?}");
        scene.gets(seg().ack(3_001));
        assert_eq!(scene.tcp.statistics().srtt, before);
    }
}

/// RFC 9293, section 3.8.1 (MUST-18), and RFC 6298, section 3 (Karn): without timestamps, retransmitted data
/// gives no sample.
#[test]
fn what_was_sent_twice_is_not_measured() {
    let mut scene = Scene::established(plain());
    let before = scene.tcp.statistics().srtt;
    scene.sends(1_000);
    scene.after(ms(250));
    scene.gets(seg().ack(1001));
    assert_eq!(scene.tcp.statistics().srtt, before);
    scene.sends(1_000);
    scene.after(ms(90));
    scene.gets(seg().ack(2001));
    assert_eq!(scene.tcp.statistics().srtt, Some(ms(20)));
}

/// The time that a segment waits in an aggregate does not count as network delay.
#[test]
fn a_round_trip_ends_when_the_frame_arrives() {
    let mut scene = Scene::established(plain());
    scene.sends(1_000);
    scene.after(ms(90));
    scene.gets(seg().ack(1001).arrived_earlier(ms(80)));
    assert_eq!(scene.tcp.statistics().srtt, Some(ms(10)));
}

/// RFC 9293, section 3.8.3 (MUST-20, SHLD-9, SHLD-10, SHLD-11): R1 is reported, R2 ends the connection. RFC
/// 9293, section 3.9.1.8 (MUST-47, SHLD-20): an application that does not ask for events gets none.
#[test]
fn a_peer_that_vanished_is_given_up() {
    let mut scene = Scene::established(plain());
    scene.sends(1_000);
    // Two retransmissions, at 200 and 600 ms, are not yet R1.
    assert_eq!(scene.after(ms(1_399)).len(), 2);
    assert!(!scene.tcp.take_events().contains(Events::STALLED));
    assert_eq!(scene.after(ms(101)).len(), 1);
    // Other calls return the same results as before.
    assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::NotYet));
    assert_eq!(scene.tcp.send(b"x"), Ok(1));
    assert!(scene.tcp.take_events().contains(Events::STALLED));
    scene.after(ms(298_000));
    assert_eq!(scene.tcp.state(), State::Established);
    scene.after(ms(1_000));
    assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::Failed(Failure::TimedOut)));
    assert_eq!(scene.tcp.poll_at(), None);
}

/// Text that a peer had sent before it vanished was acknowledged, so it is read before the failure is
/// returned, once.
#[test]
fn text_of_a_peer_that_vanished_is_read() {
    let mut scene = Scene::established(plain());
    scene.gets(seg().len(10));
    scene.sends(1_000);
    scene.after(ms(301_000));
    assert_eq!(scene.reads().len(), 10);
    assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::Failed(Failure::TimedOut)));
    assert_eq!(scene.tcp.receive(&mut [0]), Ok(0));

    let probed = KeepAlive { idle: ms(1_000), interval: ms(1_000), probes: 2 };
    let mut scene = Scene::established(Config { keep_alive: Some(probed), ..plain() });
    scene.gets(seg().len(10));
    scene.after(ms(5_000));
    assert_eq!(scene.reads().len(), 10);
    assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::Failed(Failure::TimedOut)));
}

/// RFC 9293, section 3.8.4 (MUST-25): keep-alive is off by default.
#[test]
fn an_idle_connection_says_nothing() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.after(ms(100_000_000)), [""; 0]);
}

fn with_keep_alive() -> Scene {
    let keep_alive = KeepAlive { idle: ms(10_000), interval: ms(1_000), probes: 3 };
    Scene::established(Config { keep_alive: Some(keep_alive), ..plain() })
}

/// RFC 9293, section 3.8.4 (MUST-24, 26, 27, 29, SHLD-12): keep-alive probes leave after the configured time,
/// without text, and one unanswered probe does not end the connection.
#[test]
fn an_idle_peer_is_asked() {
    let mut scene = with_keep_alive();
    assert_eq!(scene.after(ms(9_999)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 0:0 ack 1"]);
    assert_eq!(scene.after(ms(1_000)), [". 0:0 ack 1"]);
    scene.gets(seg());
    assert_eq!(scene.after(ms(9_999)), [""; 0]);
    assert_eq!(scene.after(ms(2_001)).len(), 3);
    scene.after(ms(1_000));
    assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::Failed(Failure::TimedOut)));
}

/// RFC 9293, section 3.8.4 (MUST-26): no probe is sent while data is outstanding.
#[test]
fn a_busy_peer_is_not_asked() {
    let mut scene = with_keep_alive();
    scene.sends(10);
    let sent = scene.after(ms(12_000));
    assert!(sent.iter().all(|line| line == "P. 1:11 ack 1"), "{sent:?}");
}

/// In TIME-WAIT no probes are sent.
#[test]
fn a_peer_that_is_done_is_not_asked() {
    let mut scene = with_keep_alive();
    scene.tcp.shutdown().unwrap();
    scene.out();
    scene.gets(seg().ack(2).fin());
    scene.out();
    scene.gets(seg().seq(2).ack(2));
    assert_eq!(scene.tcp.state(), State::TimeWait);
    assert_eq!(scene.after(ms(70_000)), [""; 0]);
    assert!(scene.tcp.is_closed());
}

/// RFC 9293, section 3.8.3 (MUST-21): the application can set R2.
#[test]
fn the_time_until_giving_up_can_be_chosen() {
    let mut scene = Scene::established(Config { user_timeout: ms(10_000), ..plain() });
    scene.sends(1_000);
    scene.after(ms(9_999));
    assert_eq!(scene.tcp.state(), State::Established);
    scene.after(ms(1));
    assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::Failed(Failure::TimedOut)));
}

/// RFC 9293, section 3.8.4 (MUST-28): the default idle time is two hours.
#[test]
fn an_idle_peer_is_asked_after_two_hours() {
    let keep_alive = Some(KeepAlive::default());
    let mut scene = Scene::established(Config { keep_alive, ..plain() });
    assert_eq!(scene.after(ms(7_199_999)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 0:0 ack 1"]);
}

/// RFC 5681, section 3.1 (f): a repeated timeout of one segment does not lower the threshold again.
#[test]
fn a_second_timeout_does_not_lower_the_threshold_again() {
    let mut scene = Scene::established(plain());
    scene.sends(10_000);
    scene.after(ms(200));
    let threshold = scene.tcp.statistics().ssthresh;
    assert_eq!(threshold, 7_000);
    scene.after(ms(5_000));
    assert_eq!(scene.tcp.statistics().ssthresh, threshold);
}

/// RFC 7323, section 4.1: the echo in a duplicate shows how long the peer kept it, not the round-trip time.
#[test]
fn a_duplicate_is_not_measured() {
    let mut scene = Scene::established(Config { timestamps: true, ..plain() });
    scene.sends(3_000);
    let before = scene.tcp.statistics().srtt;
    scene.after(ms(150));
    scene.gets(seg().ts(1, 10));
    scene.gets(seg().ts(2, 10));
    assert_eq!(scene.tcp.statistics().srtt, before);
    scene.gets(seg().ack(1 + scene.tcp.statistics().mss).ts(3, 10));
    assert!(scene.tcp.statistics().srtt > before);
}

/// RFC 9293, section 3.9.1, RFC 5482: the user timeout of an open connection can be changed; outstanding data
/// gets the new time from then on.
#[test]
fn the_user_timeout_may_change_while_data_waits() {
    let mut scene = Scene::established(plain());
    scene.sends(10);
    scene.after(ms(1_000));
    scene.tcp.set_user_timeout(scene.now, ms(500));
    scene.after(ms(499));
    assert!(!scene.tcp.is_closed());
    scene.after(ms(1));
    assert_eq!(scene.tcp.receive(&mut [0]), Err(CallError::Failed(Failure::TimedOut)));
}

/// RFC 9293, section 3.8.4 (MUST-24): keep-alive can be switched on and off for each connection at any time.
#[test]
fn keep_alive_can_be_switched() {
    let mut scene = Scene::established(plain());
    let settings = KeepAlive { idle: ms(1_000), interval: ms(100), probes: 2 };
    scene.tcp.set_keep_alive(scene.now, Some(settings)).unwrap();
    assert_eq!(scene.after(ms(999)), [""; 0]);
    assert_eq!(scene.after(ms(1)), [". 0:0 ack 1"]);
    scene.tcp.set_keep_alive(scene.now, None).unwrap();
    assert_eq!(scene.after(ms(60_000)), [""; 0]);
    let wrong = KeepAlive { probes: 1, ..settings };
    assert!(scene.tcp.set_keep_alive(scene.now, Some(wrong)).is_err());
}
