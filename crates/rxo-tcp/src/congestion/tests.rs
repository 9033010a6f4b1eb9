//! Growth and reduction against the formulas of the RFCs.

use rxo_frame::{Duration, Instant};

use super::*;

const MSS: u32 = 1000;
const RTT: Duration = Duration::from_millis(100);

fn limited(algorithm: Algorithm) -> Congestion {
    Congestion { is_limiting: true, ..Congestion::new(algorithm, MSS) }
}

/// A round trip: every segment of the window is acknowledged by itself.
fn round_trip(congestion: &mut Congestion, now: &mut Instant) {
    *now = *now + RTT;
    for _ in 0..congestion.cwnd() / MSS {
        congestion.on_ack(&Acked { now: *now, bytes: MSS, rtt: RTT });
    }
}

/// RFC 6928, section 2 (a).
#[test]
fn the_initial_window_is_ten_segments() {
    assert_eq!(initial_window(1460), 14_600);
    assert_eq!(initial_window(536), 5_360);
    assert_eq!(initial_window(8960), 17_920);
}

/// RFC 5681, section 3.1: slow start doubles the window each round trip.
#[test]
fn slow_start_doubles() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
        let (mut congestion, mut now) = (limited(algorithm), Instant::ZERO);
        (0..3).for_each(|_| round_trip(&mut congestion, &mut now));
        assert_eq!(congestion.cwnd(), 80 * MSS);
    }
}

/// Menon 2008, section 3.4: one acknowledgement for much counts for two segments (RFC 3465), ten
/// for the same data count for all of it. This is why each is told.
#[test]
fn acknowledgements_are_counted() {
    let (mut one, mut ten) = (limited(Algorithm::Reno), limited(Algorithm::Reno));
    one.on_ack(&Acked { now: Instant::ZERO, bytes: 10 * MSS, rtt: RTT });
    for _ in 0..10 {
        ten.on_ack(&Acked { now: Instant::ZERO, bytes: MSS, rtt: RTT });
    }
    assert_eq!((one.cwnd(), ten.cwnd()), (12 * MSS, 20 * MSS));
}

/// RFC 5681, section 3.1: one segment each round trip in congestion avoidance.
#[test]
fn reno_adds_a_segment_each_round_trip() {
    let (mut congestion, mut now) = (limited(Algorithm::Reno), Instant::ZERO);
    congestion.set_cwnd(20 * MSS);
    congestion.on_loss(20 * MSS);
    congestion.set_cwnd(congestion.ssthresh());
    assert_eq!(congestion.cwnd(), 10 * MSS);
    (0..8).for_each(|_| round_trip(&mut congestion, &mut now));
    assert_eq!(congestion.cwnd(), 18 * MSS);
}

/// RFC 9438, section 4.2: within 2 % of W_cubic(t), round trip by round trip, where it is above
/// what Reno would have.
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

/// RFC 9438, section 4.3: with a small window it grows as Reno would, so as not to lose to it.
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

/// RFC 9438, section 5.8: a window that nobody fills does not grow.
#[test]
fn an_unused_window_does_not_grow() {
    let mut congestion = Congestion::new(Algorithm::Cubic, MSS);
    congestion.on_ack(&Acked { now: Instant::ZERO, bytes: MSS, rtt: RTT });
    assert_eq!(congestion.cwnd(), 10 * MSS);
}

/// RFC 5681, section 4.1.
#[test]
fn an_idle_window_starts_again() {
    let mut congestion = limited(Algorithm::Reno);
    congestion.set_cwnd(100 * MSS);
    congestion.on_idle(Duration::from_millis(100), Duration::from_millis(200));
    assert_eq!(congestion.cwnd(), 100 * MSS);
    congestion.on_idle(Duration::from_millis(300), Duration::from_millis(200));
    assert_eq!(congestion.cwnd(), 10 * MSS);
}
