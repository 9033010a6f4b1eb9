//! Tests of the evidence that RACK accepts, and of its wait for reordering.

use super::*;
use crate::recovery::scoreboard::RangeState;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

fn sent(sent_at: u64, end: u32, was_retransmitted: bool) -> Sent {
    let (start, end) = (SeqNumber(end - 100), SeqNumber(end));
    Sent { start, end, sent_at: at(sent_at), was_retransmitted, state: RangeState::InFlight }
}

fn arrival(millis: u64, echoed: Option<u64>) -> Arrival {
    Arrival { at: at(millis), echoed: echoed.map(at), least_rtt: ms(10) }
}

/// An ACK that comes earlier than the minimum round-trip time, or echoes an older timestamp, is for the
/// original transmission (RFC 8985, section 6.2 (d)).
#[test]
fn a_retransmission_answered_too_soon_is_no_evidence() {
    let knows = |range: Sent, arrival: Arrival| {
        let mut rack = Rack::default();
        rack.delivered(&range, &arrival);
        rack.latest.is_some()
    };
    assert!(!knows(sent(100, 500, true), arrival(109, None)));
    assert!(knows(sent(100, 500, true), arrival(110, None)));
    assert!(!knows(sent(100, 500, true), arrival(150, Some(99))));
    assert!(knows(sent(100, 500, true), arrival(150, Some(100))));
    assert!(knows(sent(100, 500, false), arrival(109, Some(99))));
}

/// With evidence of a loss and without reordering seen, there is no wait. Otherwise the wait is a quarter of
/// the minimum round-trip time, a quarter more for each round with a duplicate, and at most a smoothed round
/// trip. After sixteen recoveries it is as long as at first (RFC 8985, section 6.2 (b, c)).
#[test]
fn the_wait_for_reordering_follows_what_was_seen() {
    let mut rack = Rack::default();
    let wait = |rack: &Rack, has_evidence| rack.reordering_window(has_evidence, ms(40), ms(50));
    assert_eq!(wait(&rack, true), Duration::ZERO);
    assert_eq!(wait(&rack, false), ms(10));
    rack.was_reordering();
    assert_eq!(wait(&rack, true), ms(10));
    rack.duplicate_arrived(SeqNumber(500));
    rack.duplicate_arrived(SeqNumber(600));
    assert_eq!(wait(&rack, true), ms(20), "two in one round count once");
    for round in 0..9 {
        rack.acknowledged(SeqNumber(500 + round));
        rack.duplicate_arrived(SeqNumber(500 + round));
    }
    assert_eq!(wait(&rack, true), ms(50));
    (0..15).for_each(|_| rack.recovery_ended());
    assert_eq!(wait(&rack, true), ms(50));
    rack.recovery_ended();
    assert_eq!(wait(&rack, true), ms(10));
}
