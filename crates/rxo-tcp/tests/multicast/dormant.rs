//! The fast path of acknowledgements, with dormant members, has the effect of the slow path.

use rxo_frame::Duration;
use rxo_tcp::Slow;

use crate::room::{FOR_EVER, Room, group_config};

/// Returns the sender's state for each receiver once the slowest has acknowledged `slowest` bytes.
fn known(is_sleepless: bool, slowest: u64) -> (Vec<impl PartialEq + std::fmt::Debug>, [u64; 3]) {
    let mut room = Room::new(group_config(), 20, 3_000_000);
    room.is_sleepless = is_sleepless;
    room.begin();
    room.run_until(|room| room.group.progress().slowest >= slowest);
    let sides = room.sides.iter().map(|side| {
        let it = side.tcp.statistics();
        (it.snd_una, it.snd_wnd, it.cwnd, it.srtt, it.rto)
    });
    (sides.collect(), [room.now.as_nanos(), room.to_group[0], room.to_one])
}

/// Without losses and pauses, dormant members lead to exactly the same state.
#[test]
fn dormant_members_hold_the_group_as_all_do() {
    for slowest in [10_000, 100_000, 500_000, 1_000_000, 2_500_000] {
        assert_eq!(known(false, slowest), known(true, slowest), "{slowest} bytes");
    }
}

/// Runs a cast to 20 receivers; `loss` of 1000 segments are lost. One receiver is absent for `pause`.
fn cast(is_sleepless: bool, loss: u64, pause: Duration, seed: u64) -> Room {
    let mut room = Room::new(group_config(), 20, 3_000_000);
    room.is_sleepless = is_sleepless;
    (room.links.loss, room.links.random) = (loss, 1_000_003 * seed);
    room.begin();
    if !pause.is_zero() {
        room.run_until(|room| room.group.progress().slowest > 100_000);
        room.receivers[3].absent_until = room.now + pause;
    }
    room.finish();
    assert_eq!(room.done(), 20, "loss {loss}, seed {seed}: {:?}", room.outcomes());
    room
}

/// Under loss the results differ, because a dormant connection detects a missing acknowledgement later: a
/// round trip here takes 0.4 ms, and the group checks after 10 ms. The difference stays within bounds.
#[test]
fn under_loss_and_pauses_dormant_members_are_a_little_later() {
    let no_pause = Duration::ZERO;
    for (loss, pause) in [
        (1, no_pause),
        (5, no_pause),
        (10, no_pause),
        (0, Duration::from_millis(300)),
        (0, Duration::from_secs(3)),
        (10, Duration::from_secs(3)),
    ] {
        let sum = |is_sleepless: bool| {
            let rooms = (1..=10).map(|seed| cast(is_sleepless, loss, pause, seed));
            rooms.fold([0; 2], |[time, repairs], room| {
                let repaired = room.to_group[1] + room.to_one;
                [time + room.now.as_nanos() - BEGUN_NS, repairs + repaired]
            })
        };
        let ([time, repairs], [time_of_all, repairs_of_all]) = (sum(false), sum(true));
        let said = format!("loss {loss}, pause {pause:?}");
        assert!(
            time * 100 <= time_of_all * 130,
            "{said}: {time} ns, {time_of_all} if all are awake"
        );
        assert!(repairs * 100 <= repairs_of_all * 110, "{said}: {repairs}, {repairs_of_all}");
    }
}

/// Receivers rarely answer text that they have from the group, so a repair whose answer was lost must go to
/// its receiver alone. When such repairs went to the group, a receiver that had everything was ejected.
#[test]
fn loss_of_three_percent_ejects_nobody() {
    for is_sleepless in [false, true] {
        (1..=5).for_each(|seed| _ = cast(is_sleepless, 30, Duration::ZERO, seed));
    }
}

#[test]
fn nearly_all_acknowledgements_find_members_dormant() {
    let mut room = Room::new(group_config(), 20, 3_000_000);
    room.run();
    let [slept, served] = room.acks;
    assert!(slept > 3 * served, "{slept} found members dormant, {served} did not");
}

/// A dormant connection has no timer, so its group must detect missing acknowledgements.
#[test]
fn a_dormant_member_that_falls_silent_is_woken() {
    let slow = Slow::Wait;
    let mut room = Room::new(rxo_tcp::GroupConfig { slow, ..group_config() }, 5, 3_000_000);
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 500_000);
    assert!(room.acks[0] > 0);
    room.receivers[2].absent_until = FOR_EVER;
    let sent = room.to_one;
    let silent_since = room.now;
    room.run_until(|room| room.to_one > sent);
    let time = room.now - silent_since;
    assert!(time < Duration::from_secs(1), "probed after {time:?}");
}

/// A dormant member has no timers, so the group must check it as long as text is outstanding.
#[test]
fn nobody_sleeps_for_ever_whatever_is_lost() {
    for seed in 0..SEEDS {
        let slow = Slow::Wait;
        let config = rxo_tcp::GroupConfig { slow, ..group_config() };
        let mut room = Room::new(config, 1 + seed as usize % 6, 1_500_000);
        (room.links.random, room.links.loss) = (seed, [5, 10, 50][seed as usize % 3]);
        let began_at = room.now;
        room.run();
        assert_eq!(room.done(), room.sides.len(), "seed {seed}: {:?}", room.outcomes());
        let time = room.now - began_at;
        assert!(time < Duration::from_secs(120), "seed {seed}: {time:?}");
    }
}

const SEEDS: u64 = 60;
/// The virtual time at which a room opens.
const BEGUN_NS: u64 = 1_000_000_000;
