//! Tests of growth and reduction against the formulas of the RFCs.

use rxo_frame::{Duration, Instant};

use super::*;

const MSS: u32 = 1000;
const RTT: Duration = Duration::from_millis(100);

fn new(algorithm: Algorithm) -> Congestion {
    Congestion::new(&Config { congestion: algorithm, ..Config::default() }, MSS)
}

fn limited(algorithm: Algorithm) -> Congestion {
    Congestion { is_limiting: true, ..new(algorithm) }
}

/// Simulates a round trip in which every segment of the window is acknowledged separately.
fn round_trip(congestion: &mut Congestion, now: &mut Instant) {
    *now = *now + RTT;
    for _ in 0..congestion.cwnd() / MSS {
        congestion.on_ack(&acked(*now, MSS));
    }
}

/// Returns an acknowledgement of `bytes` bytes at `now`.
fn acked(now: Instant, bytes: u32) -> Acked {
    let (ack, nxt) = (SeqNumber(0), SeqNumber(0));
    Acked { now, bytes, rtt: RTT, ack, nxt, sample_ns: None, after_timeout: false }
}

/// Slow start doubles the window in each round trip (RFC 5681, section 3.1).
#[test]
fn slow_start_doubles() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
        let (mut congestion, mut now) = (limited(algorithm), Instant::ZERO);
        (0..3).for_each(|_| round_trip(&mut congestion, &mut now));
        assert_eq!(congestion.cwnd(), 80 * MSS);
    }
}

/// One acknowledgement of eight segments counts as eight of one segment (RFC 3465, section 2.2 (a)).
#[test]
fn bytes_are_counted() {
    let (mut one, mut ten) = (limited(Algorithm::Reno), limited(Algorithm::Reno));
    one.on_ack(&acked(Instant::ZERO, 8 * MSS));
    for _ in 0..8 {
        ten.on_ack(&acked(Instant::ZERO, MSS));
    }
    assert_eq!((one.cwnd(), ten.cwnd()), (18 * MSS, 18 * MSS));
}

/// One acknowledgement counts for at most eight segments, or for twice the largest aggregate of the last two
/// round trips; after a timeout for one segment (RFC 3465, section 2.3 (b), and RFC 9406, section 4.3 (a)).
#[test]
fn the_limit_follows_the_aggregation_seen() {
    let mut congestion = limited(Algorithm::Reno);
    let mut growth = |bytes, after_timeout| {
        let before = congestion.cwnd();
        congestion.on_ack(&Acked { after_timeout, ..acked(Instant::ZERO, bytes * MSS) });
        (congestion.cwnd() - before) / MSS
    };
    assert_eq!(growth(30, false), 8);
    assert_eq!(growth(70, false), 60);
    assert_eq!(growth(70, false), 70);
    assert_eq!(growth(70, true), 1);
    assert_eq!((growth(1, false), growth(1, false)), (1, 1));
    assert_eq!(growth(30, false), 8);
}

/// Slow start ends at the threshold, however much is acknowledged (RFC 5681, section 3.1).
#[test]
fn slow_start_does_not_pass_the_threshold() {
    let mut congestion = limited(Algorithm::Reno);
    congestion.on_loss(24 * MSS);
    congestion.set_cwnd(10 * MSS);
    congestion.on_ack(&acked(Instant::ZERO, 8 * MSS));
    assert_eq!(congestion.cwnd(), 12 * MSS);
}

/// The growth by a large acknowledgement becomes usable a little later.
#[test]
fn growth_is_held_at_first() {
    let mut congestion = limited(Algorithm::Reno);
    congestion.on_ack(&acked(Instant::ZERO, 8 * MSS));
    assert_eq!((congestion.cwnd(), congestion.allowed(0)), (18 * MSS, 12 * MSS));
    let due = congestion.release_at().unwrap();
    assert!(due > Instant::ZERO && due < Instant::ZERO + RTT / 4);
    congestion.release(due);
    assert_eq!((congestion.allowed(0), congestion.release_at()), (18 * MSS, None));
    // A loss discards the held growth.
    congestion.on_ack(&acked(Instant::ZERO, 8 * MSS));
    congestion.set_cwnd(5 * MSS);
    assert_eq!((congestion.allowed(0), congestion.release_at()), (5 * MSS, None));
}

/// Reno grows by one segment per round trip in congestion avoidance, however many acknowledgements arrive
/// (RFC 5681, section 3.1; RFC 3465, section 2.1).
#[test]
fn reno_adds_a_segment_each_round_trip() {
    for segments in [1, 2, 9] {
        let mut congestion = limited(Algorithm::Reno);
        congestion.set_cwnd(20 * MSS);
        congestion.on_loss(20 * MSS);
        congestion.set_cwnd(congestion.ssthresh());
        assert_eq!(congestion.cwnd(), 10 * MSS);
        // 10 + 11 + ... + 17 segments.
        for _ in 0..108 / segments {
            congestion.on_ack(&acked(Instant::ZERO, segments * MSS));
        }
        assert_eq!(congestion.cwnd(), 18 * MSS, "{segments} at once");
    }
}

/// With a known threshold, slow start continues up to it, whatever the delay (RFC 9406, section 4.3 (b)).
#[test]
fn only_the_first_slow_start_ends_by_delay() {
    let window_after = |has_threshold| {
        let mut congestion = limited(Algorithm::Cubic);
        if has_threshold {
            congestion.on_loss(10_000 * MSS);
        }
        let mut ack = SeqNumber(0);
        for round_ms in [40, 40, 80, 80, 80] {
            let sample_ns = Some(round_ms * 1_000_000);
            for _ in 0..congestion.cwnd() / MSS {
                ack = ack + MSS;
                let nxt = ack + congestion.cwnd();
                let one = acked(Instant::ZERO, MSS);
                congestion.on_ack(&Acked { ack, nxt, sample_ns, ..one });
            }
        }
        congestion.cwnd() / MSS
    };
    assert_eq!(window_after(true), 320);
    assert!(window_after(false) < 100);
}

/// The window stays within 2 % of W_cubic(t) in every round trip while that is above Reno's window (RFC 9438,
/// section 4.2).
#[test]
fn cubic_follows_its_function() {
    let (mut congestion, mut now) = (limited(Algorithm::Cubic), Instant::ZERO);
    congestion.set_cwnd(1000 * MSS);
    congestion.on_loss(1000 * MSS);
    congestion.set_cwnd(congestion.ssthresh());
    assert_eq!(congestion.cwnd(), 700 * MSS);
    let k = (300.0_f64 / 0.4).cbrt();
    round_trip(&mut congestion, &mut now);
    let start = now;
    for _ in 0..150 {
        round_trip(&mut congestion, &mut now);
        let t = now.since(start).as_secs_f64() + RTT.as_secs_f64();
        let expected = (0.4 * (t - k).powi(3) + 1000.0) * f64::from(MSS);
        let error = (f64::from(congestion.cwnd()) - expected).abs() / expected;
        assert!(error < 0.02, "{} at {t} s, expected {expected}", congestion.cwnd());
    }
}

/// A small window grows as fast as Reno's, so that CUBIC does not lose to Reno (RFC 9438, section 4.3).
#[test]
fn cubic_is_friendly_to_reno() {
    let (mut congestion, mut now) = (limited(Algorithm::Cubic), Instant::ZERO);
    congestion.set_cwnd(20 * MSS);
    congestion.on_loss(20 * MSS);
    congestion.set_cwnd(congestion.ssthresh());
    (0..10).for_each(|_| round_trip(&mut congestion, &mut now));
    // 14 segments, and 9/17 of a segment each round trip.
    let expected = 14.0 + 10.0 * 9.0 / 17.0;
    let segments = f64::from(congestion.cwnd()) / f64::from(MSS);
    assert!((segments - expected).abs() < 1.0, "{segments} segments, expected {expected}");
}

/// A window that is not filled does not grow (RFC 9438, section 5.8).
#[test]
fn an_unused_window_does_not_grow() {
    let mut congestion = new(Algorithm::Cubic);
    congestion.on_ack(&acked(Instant::ZERO, MSS));
    assert_eq!(congestion.cwnd(), 10 * MSS);
}

/// After idle time the window falls back to the initial one (RFC 5681, section 4.1).
#[test]
fn an_idle_window_starts_again() {
    let mut congestion = limited(Algorithm::Reno);
    congestion.set_cwnd(100 * MSS);
    congestion.resume(Instant::ZERO, None, true);
    assert_eq!((congestion.cwnd(), congestion.allowed(0)), (10 * MSS, 10 * MSS));
}

/// With pacing an idle window is kept, and its data leaves within a round trip (RFC 7661, section 4.4.2 (a)).
#[test]
fn an_idle_window_is_paced() {
    let mut congestion = limited(Algorithm::Reno);
    congestion.set_cwnd(100 * MSS);
    let start = Instant::from_micros(5_000_000);
    congestion.resume(start, Some(RTT), false);
    assert_eq!((congestion.cwnd(), congestion.allowed(0)), (100 * MSS, 10 * MSS));
    // The window does not grow, because it is not full before all of it may leave.
    congestion.on_held(start, true, 10 * MSS);
    congestion.on_ack(&acked(start, MSS));
    assert_eq!(congestion.cwnd(), 100 * MSS);
    for tenth in 2..=10 {
        let due = congestion.release_at().unwrap();
        assert_eq!(due, start + RTT / 10 * (tenth - 1));
        congestion.release(due);
        assert_eq!(congestion.allowed(0), tenth * 10 * MSS);
    }
    assert_eq!(congestion.release_at(), None);
    // On a short path timers cannot pace, so the window restarts.
    congestion.resume(start, Some(Duration::from_millis(1)), false);
    assert_eq!((congestion.cwnd(), congestion.release_at()), (10 * MSS, None));
}

/// A window that is not filled is halved every five minutes, down to the initial one (RFC 7661, section 4.4.3
/// (a)).
#[test]
fn an_unused_window_lasts_five_minutes() {
    let mut congestion = limited(Algorithm::Cubic);
    congestion.set_cwnd(80 * MSS);
    congestion.on_loss(20 * MSS);
    let start = Instant::from_micros(5_000_000);
    congestion.on_held(start, true, 80 * MSS);
    let mut after = |seconds| {
        congestion.on_held(start + Duration::from_secs(seconds), false, MSS);
        (congestion.cwnd() / MSS, congestion.ssthresh() / MSS)
    };
    let windows = [300, 301, 601, 602, 1_000, 2_000].map(&mut after);
    assert_eq!(windows, [(80, 14), (40, 60), (40, 60), (20, 60), (10, 60), (10, 60)]);
}

/// A pause longer than five minutes halves the window before the first flight after it (RFC 7661, section
/// 4.4.3 (a)).
#[test]
fn a_long_pause_halves_the_window_first() {
    let mut congestion = limited(Algorithm::Reno);
    congestion.set_cwnd(80 * MSS);
    let start = Instant::from_micros(5_000_000);
    congestion.on_held(start, true, 80 * MSS);
    let later = start + Duration::from_secs(301);
    congestion.resume(later, Some(RTT), false);
    assert_eq!((congestion.cwnd(), congestion.allowed(0)), (40 * MSS, 10 * MSS));
    congestion.on_held(later, true, 10 * MSS);
    congestion.release(later + RTT);
    assert_eq!(congestion.allowed(0), 40 * MSS);
}
