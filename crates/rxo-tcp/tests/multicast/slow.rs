//! Receivers that delay the others, by accident or on purpose, and the limits of that.

use rxo_frame::Duration;
use rxo_tcp::{Config, GroupConfig, Outcome, Slow};

use crate::room::{FOR_EVER, Room, group_config, receiver_config};

/// RFC 9293, section 3.8.6.1 lets a window stay closed for ever; the other receivers do not wait for ever.
#[test]
fn a_window_that_never_opens_is_ejected() {
    let mut room = Room::new(group_config(), 10, 2_000_000);
    room.receivers[3].reads_at_most = 100_000;
    room.run();
    assert_eq!(room.done(), 9, "{:?}", room.outcomes());
    assert_eq!(room.sides[3].outcome, Some(Outcome::Ejected(Duration::from_secs(10))));
}

/// Probes of a receiver's window do not count as progress.
#[test]
fn a_window_of_a_few_bytes_is_ejected() {
    let mut room = Room::new(group_config(), 10, 2_000_000);
    room.receivers[3].reads_at_most = 100_000;
    room.begin();
    for more in 1..200 {
        let until = room.now + Duration::from_millis(500);
        room.run_until(|room| room.now >= until || room.sides[3].outcome.is_some());
        room.receivers[3].reads_at_most = 100_000 + more;
    }
    room.finish();
    assert_eq!(room.done(), 9, "{:?}", room.outcomes());
}

/// Runs a room in which one receiver reads a segment from time to time, just often enough for
/// [`Slow::Eject`].
fn reads_a_segment_now_and_then(slow: Slow) -> Room {
    let mut room = Room::new(GroupConfig { slow, ..group_config() }, 10, 2_000_000);
    room.receivers[3].reads_at_most = 100_000;
    room.begin();
    for _ in 0..20 {
        let until = room.now + Duration::from_secs(4);
        room.run_until(|room| room.now >= until || room.sides[3].outcome.is_some());
        room.receivers[3].reads_at_most += 3_000;
        room.read_again(3);
    }
    room
}

/// A receiver that takes 750 bytes per second may stay for ever, unless a higher rate is required.
#[test]
fn whoever_holds_all_to_less_than_is_asked_for_is_ejected() {
    let time = Duration::from_secs(10);
    let room = reads_a_segment_now_and_then(Slow::Eject(time));
    assert_eq!(room.outcomes(), [None; 10], "a segment in each ten seconds");
    let mut room = reads_a_segment_now_and_then(Slow::EjectBelow { time, bytes: 100_000 });
    assert_eq!(room.sides[3].outcome, Some(Outcome::TooSlow(100_000, time)));
    room.finish();
    assert_eq!(room.done(), 9, "{:?}", room.outcomes());
}

/// A receiver that keeps the required rate stays, whatever is lost meanwhile.
#[test]
fn whoever_is_fast_enough_stays() {
    let (time, bytes) = (Duration::from_secs(1), 100_000);
    for loss in [0, 5] {
        let slow = Slow::EjectBelow { time, bytes };
        let mut room = Room::new(GroupConfig { slow, ..group_config() }, 10, 3_000_000);
        room.links.loss = loss;
        // The link has 1.6 Mbit/s, so a round of the buffer takes seconds.
        room.links.byte_time = Duration::from_micros(5);
        room.run();
        assert_eq!(room.done(), 10, "loss {loss}: {:?}", room.outcomes());
    }
}

#[test]
fn all_wait_for_a_receiver_that_pauses() {
    let mut room = Room::new(group_config(), 10, 2_000_000);
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 100_000);
    let segments = |room: &Room| room.sides[0].tcp.statistics().mss;
    let (full, back) = (segments(&room), room.now + Duration::from_secs(5));
    room.receivers[0].absent_until = back;
    room.run_until(|room| room.now >= back);
    let behind = room.group.progress().slowest;
    assert!(behind < 2_000_000 - 500_000, "they wait: {behind}");
    assert_eq!(segments(&room), full, "a pause is no path that drops full segments");
    room.finish();
    assert_eq!(room.done(), 10, "{:?}", room.outcomes());
}

/// With `wait`, a receiver is removed only when its own connection fails, after the user timeout.
#[test]
fn whoever_waits_waits_for_the_user_timeout() {
    let config = GroupConfig { slow: Slow::Wait, ..group_config() };
    let mut room = Room::new(config, 4, 2_000_000);
    room.begin();
    room.receivers[0].absent_until = FOR_EVER;
    let begun = room.now;
    room.finish();
    assert_eq!(room.done(), 3, "{:?}", room.outcomes());
    let user_timeout = Config::default().user_timeout;
    assert!(room.now - begun >= user_timeout, "{:?}", room.now - begun);
}

/// RFC 9293, section 3.8.6.1 (MUST-37): as long as a receiver answers window probes, its connection does not
/// fail.
#[test]
fn whoever_waits_waits_for_a_window_as_long_as_probes_are_answered() {
    let config = GroupConfig { slow: Slow::Wait, ..group_config() };
    let mut room = Room::new(config, 4, 2_000_000);
    room.receivers[0].reads_at_most = 100_000;
    room.begin();
    let until = room.now + 4 * Config::default().user_timeout;
    room.run_until(|room| room.now >= until);
    assert_eq!(room.outcomes(), [None; 4]);
    room.receivers[0].reads_at_most = usize::MAX;
    room.read_again(0);
    room.finish();
    assert_eq!(room.done(), 4, "{:?}", room.outcomes());
}

/// The receiver has everything, but never confirms it.
#[test]
fn a_receiver_that_does_not_confirm_is_not_waited_for_for_ever() {
    let mut room = Room::new(group_config(), 3, 100_000);
    room.receivers[1].is_done = true;
    room.run();
    assert_eq!(room.done(), 2, "{:?}", room.outcomes());
    let outcome = room.sides[1].outcome;
    assert!(matches!(outcome, Some(Outcome::Unconfirmed(_))), "{outcome:?}");
}

/// The smallest segment size of all receivers applies, down to the lower limit.
#[test]
fn the_smallest_segments_hold() {
    let mut room = Room::new(group_config(), 3, 100_000);
    room.come(Config { maximum_segment_size: 1_012, ..receiver_config() });
    room.run();
    assert_eq!((room.done(), room.to_group[0]), (4, 100));
    let mut room = Room::new(group_config(), 3, 100_000);
    let tiny = room.come(Config { maximum_segment_size: 100, ..receiver_config() });
    room.run();
    assert_eq!(room.sides[tiny].refused, Some(rxo_tcp::Refusal::SmallSegments(88)));
    assert_eq!((room.done(), room.to_group[0]), (3, 70));
}

/// When the receiver with the smallest segments has left, segments grow again.
#[test]
fn segments_grow_again_when_whoever_had_the_smallest_is_gone() {
    let mut room = Room::new(group_config(), 3, 3_000_000);
    let small = room.come(Config { maximum_segment_size: 524, ..receiver_config() });
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 100_000);
    room.receivers[small].tcp.abort();
    room.read_again(small);
    room.finish();
    assert_eq!(room.done(), 3, "{:?}", room.outcomes());
    let all_small = 3_000_000 / 512;
    assert!(room.to_group[0] < all_small / 2, "{} segments", room.to_group[0]);
}
