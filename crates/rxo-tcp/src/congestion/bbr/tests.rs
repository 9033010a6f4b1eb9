//! Tests of the rate filter, the pipe detection, the pacer and the samples with values computed by hand.

use super::*;

const MSS: u32 = 1_000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// The maximum covers ten round trips, including those without a sample (draft, section 4.1.1.2).
#[test]
fn the_highest_rate_is_forgotten_after_ten_round_trips() {
    let mut bandwidth = Bandwidth::default();
    bandwidth.add(1, 500);
    bandwidth.add(2, 300);
    bandwidth.add(2, 200);
    assert_eq!(bandwidth.highest(), 500);
    bandwidth.add(10, 100);
    assert_eq!(bandwidth.highest(), 500);
    bandwidth.add(11, 100);
    assert_eq!(bandwidth.highest(), 300);
    bandwidth.add(1_000, 50);
    assert_eq!(bandwidth.highest(), 50);
}

/// The pipe is full after three round trips in which the rate grew by less than a quarter (draft, section
/// 4.3.2.2).
#[test]
fn the_pipe_is_full_when_the_rate_stops_growing() {
    let mut full = FullPipe::default();
    for rate in [100, 200, 400, 500, 600, 600] {
        full.observe(rate);
        assert!(!full.is_full, "at {rate}");
    }
    full.observe(620);
    assert!(full.is_full);
}

/// One millisecond's worth leaves at a time; after a late timer up to four milliseconds' worth more.
#[test]
fn bursts_leave_at_the_rate() {
    let mut pacer = Pacer::new(MSS);
    assert_eq!((pacer.burst(), pacer.due()), (u32::MAX, None));
    pacer.set_rate(10_000_000, at(5));
    assert_eq!(pacer.due(), Some(at(5)));
    pacer.refill(at(5));
    assert_eq!(pacer.burst(), 10_000);
    pacer.sent(at(5), 9_500);
    assert_eq!(pacer.due(), Some(at(5) + Duration::from_micros(950)));
    pacer.refill(at(5));
    assert_eq!(pacer.burst(), 500);
    pacer.refill(at(6));
    assert_eq!(pacer.burst(), 10_500);
    pacer.sent(at(6), 10_500);
    pacer.refill(at(60));
    assert_eq!(pacer.burst(), 50_000);
    // The quantum is at least two segments, however low the rate is.
    pacer.set_rate(1, at(60));
    assert_eq!(pacer.quantum(), 2 * MSS);
}

/// A sample divides the bytes by the longer of the sending and the arriving time, so acknowledgements that
/// come together do not make the path seem faster (draft-cheng-iccrg-delivery-rate-estimation, section 2.3).
#[test]
fn a_sample_is_of_the_slower_side() {
    let mut samples = Samples::new();
    for ms in 0..10 {
        samples.sent(at(100 + ms), ms as u32 * MSS);
    }
    let first = samples.arrived(at(140), MSS, Some(at(100)), 40_000_000).unwrap();
    assert_eq!((first.rate, first.delivered_before), (25_000, 0));
    // All remaining segments arrive together, ten milliseconds later.
    let rest = samples.arrived(at(150), 9 * MSS, Some(at(109)), 40_000_000).unwrap();
    assert_eq!(rest.rate, 200_000);
    // The state of an older instant is gone.
    assert!(samples.arrived(at(151), MSS, Some(at(104)), 40_000_000).is_none());
    assert_eq!(samples.delivered, 11_000);
}

/// Samples of a slow application are marked, because they show less than the path can carry.
#[test]
fn samples_of_a_slow_application_are_marked() {
    let mut samples = Samples::new();
    // The first message may be small, so its sample counts as limited.
    samples.sent(at(0), 0);
    assert!(samples.arrived(at(1), MSS, Some(at(0)), 1).unwrap().is_limited);
    samples.sent(at(2), 0);
    samples.limit(MSS);
    samples.sent(at(3), MSS);
    assert!(!samples.arrived(at(40), MSS, Some(at(2)), 1).unwrap().is_limited);
    assert!(samples.arrived(at(41), MSS, Some(at(3)), 1).unwrap().is_limited);
    assert!(!samples.is_limited());
}

/// The list of instants is bounded; samples continue when it is full.
#[test]
fn instants_are_bounded() {
    let mut samples = Samples::new();
    for ms in 0..1_000 {
        samples.sent(at(ms), ms as u32 * MSS);
    }
    let sample = samples.arrived(at(1_100), 1_000 * MSS, Some(at(999)), 1).unwrap();
    assert_eq!(sample.rate, 1_000_000 * 1_000 / 1_100);
}

/// A wait that began at a low rate is shortened to the wait at the higher rate.
#[test]
fn a_higher_rate_shortens_the_wait() {
    let mut pacer = Pacer::new(MSS);
    pacer.set_rate(1_000, at(0));
    pacer.refill(at(0));
    pacer.sent(at(0), 2 * MSS);
    assert_eq!(pacer.due(), Some(at(2_000)));
    pacer.set_rate(100_000, at(1_000));
    assert_eq!(pacer.due(), Some(at(1_010)));
    pacer.set_rate(1_000, at(1_000));
    assert_eq!(pacer.due(), Some(at(1_010)));
}

/// The pacer waits for a full segment of the new size, and a burst fits the largest segment tried.
#[test]
fn the_burst_follows_the_segment_size() {
    let mut pacer = Pacer::new(3 * MSS);
    pacer.set_mss(MSS);
    pacer.set_rate(1, at(0));
    pacer.refill(at(0));
    assert_eq!(pacer.burst(), 3 * MSS);
    pacer.sent(at(0), 2 * MSS);
    assert_eq!(pacer.due(), None);
    pacer.set_mss(3 * MSS);
    assert!(pacer.due().is_some());
}
