//! Receivers that stop for a while, or for ever, and do not hold the others up.

use rxo_frame::{Duration, Instant};
use rxo_tcp::{GroupConfig, Outcome};

use crate::costs::Case;
use crate::room::{FOR_EVER, Room, group_config, parity_config, spread_config};

/// The time for which a receiver stops.
const STOPS: Duration = Duration::from_secs(3);

/// Returns the time in which the first of `receivers` receivers get 10 MB over 100 Mbit/s while the last
/// `stopped` do not run before `until`, and the room afterwards.
fn cast(
    config: GroupConfig,
    receivers: usize,
    stopped: usize,
    until: impl Fn(Instant) -> Instant,
) -> (Duration, Room) {
    let mut room = Room::new(config, 0, 10_000_000);
    room.links.byte_time = Duration::from_nanos(80);
    run(room, receivers, stopped, until)
}

/// Runs the cast of `room`, as [`cast`] does.
fn run(
    mut room: Room,
    receivers: usize,
    stopped: usize,
    until: impl Fn(Instant) -> Instant,
) -> (Duration, Room) {
    (0..receivers as u16).for_each(|number| {
        room.come(spread_config(number % 16));
    });
    room.begin();
    let begun = room.now;
    room.run_until(|room| room.group.progress().slowest > 2_000_000);
    let until = until(room.now);
    for receiver in &mut room.receivers[receivers - stopped..] {
        receiver.absent_until = until;
    }
    let running = receivers - stopped;
    room.run_until(|room| room.receivers[..running].iter().all(|it| it.read == 10_000_000));
    (room.now.since(begun), room)
}

/// On a fast link the delay is a large share of the time, whoever stops: the first receiver leads the group.
#[test]
fn a_stopped_receiver_costs_the_others_less_than_a_tenth_of_a_second_of_a_gigabit() {
    for receivers in [5, 20] {
        let case = Case { receivers, bytes: 10_000_000, loss: 0, stops: None };
        let alone = case.cast(parity_config()).time;
        for stops in [0, receivers - 1] {
            let beside = Case { stops: Some(stops), ..case }.cast(parity_config()).time;
            assert!(beside < alone * 11 / 10, "{beside:?} instead of {alone:?}, {stops} stops");
        }
    }
}

#[test]
fn a_stopped_receiver_costs_the_others_less_than_a_tenth() {
    for config in [group_config(), parity_config()] {
        let (alone, _) = cast(config, 5, 0, |now| now);
        for (receivers, stopped) in [(2, 1), (5, 1), (5, 2)] {
            let (time, mut room) = cast(config, receivers, stopped, |now| now + STOPS);
            assert!(time < alone * 11 / 10, "{time:?}, not {alone:?}, {stopped} of {receivers}");
            room.finish();
            assert_eq!(room.done(), receivers, "{:?}", room.outcomes());
        }
    }
}

/// Beside losses, the packets for the others do not wait for the receiver that has stopped.
#[test]
fn a_stopped_receiver_costs_others_that_lose_something_less_than_a_tenth() {
    let lossy = |stopped| {
        let time = |seed| {
            let mut room = Room::new(parity_config(), 0, 10_000_000);
            room.links.byte_time = Duration::from_nanos(80);
            (room.links.loss, room.links.random) = (10, seed);
            run(room, 5, stopped, |now| now + STOPS).0
        };
        (1..=3).map(time).sum::<Duration>()
    };
    let (alone, beside) = (lossy(0), lossy(1));
    assert!(beside < alone * 11 / 10, "{beside:?} instead of {alone:?}");
}

#[test]
fn a_killed_receiver_costs_the_others_less_than_a_tenth_and_is_ejected() {
    for config in [group_config(), parity_config()] {
        let (alone, _) = cast(config, 5, 0, |now| now);
        let (time, mut room) = cast(config, 5, 1, |_| FOR_EVER);
        assert!(time < alone * 11 / 10, "{time:?} instead of {alone:?}");
        room.finish();
        assert_eq!(room.done(), 4, "{:?}", room.outcomes());
        assert_eq!(room.sides[4].outcome, Some(Outcome::Ejected(Duration::from_secs(10))));
    }
}

/// If nobody answers, the fault is not the receivers': the group waits for them.
#[test]
fn a_group_waits_when_all_are_silent() {
    let (_, mut room) = cast(group_config(), 3, 0, |now| now);
    room.finish();
    let mut room = Room::new(group_config(), 3, 4_000_000);
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 1_000_000);
    for receiver in &mut room.receivers {
        receiver.absent_until = room.now + Duration::from_secs(1);
    }
    room.run_until(|room| room.group.has_sent_all());
    assert_eq!(room.group.progress().catching_up, 0);
    room.finish();
    assert_eq!(room.done(), 3, "{:?}", room.outcomes());
}

/// Receivers on a busy machine wait for the processor again and again, while their devices keep what arrives. A receiver
/// that runs again has what the group sent meanwhile, so little of the stream is sent twice.
#[test]
fn receivers_that_wait_for_the_processor_are_sent_little_again() {
    const STEP: Duration = Duration::from_millis(1);
    let mut room = Room::new(parity_config(), 0, 10_000_000);
    room.links.byte_time = Duration::from_nanos(80);
    (0..20).for_each(|number| _ = room.come(spread_config(number % 16)));
    room.begin();
    let begun = room.now;
    let mut random = 1_u64;
    while room.sides.iter().any(|side| side.outcome.is_none()) {
        for receiver in &mut room.receivers {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Each runs for 100 ms on average, and then waits for up to 60 ms.
            if receiver.absent_until <= room.now && (random >> 33).is_multiple_of(100) {
                receiver.absent_until = room.now + STEP * ((random >> 40) % 60) as u32;
                receiver.keeps_segments = true;
            }
        }
        let until = room.now + STEP;
        room.run_until(|room| room.now >= until);
    }
    assert_eq!(room.done(), 20, "{:?}", room.outcomes());
    let sent = room.to_group.iter().sum::<u64>() + room.to_one + room.parity_packets;
    let segments = 10_000_000_u64.div_ceil(u64::from(room.group.config().largest_segment_bytes));
    let (time, to_one) = (room.now.since(begun), room.to_one);
    let said = format!("{time:?}, {sent} instead of {segments} segments, {to_one} to one");
    assert!(sent < segments * 105 / 100 && time < Duration::from_millis(1_500), "{said}");
}
