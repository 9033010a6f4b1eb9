//! The fast path of acknowledgements, by which members are dormant, does what the ordinary way does.

use rxo_tcp::Slow;

use crate::room::{FOR_EVER, Room, group_config};

/// What the sender knows of each receiver, once the slowest has acknowledged so much.
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

#[test]
fn dormant_members_hold_the_group_as_all_do() {
    for slowest in [10_000, 100_000, 500_000, 1_000_000, 2_500_000] {
        assert_eq!(known(false, slowest), known(true, slowest), "{slowest} bytes");
    }
}

#[test]
fn nearly_all_acknowledgements_find_members_dormant() {
    let mut room = Room::new(group_config(), 20, 3_000_000);
    room.run();
    let [slept, served] = room.acks;
    assert!(slept > 3 * served, "{slept} found members dormant, {served} did not");
}

/// A dormant connection has no timer: its group must miss the acknowledgements.
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
    assert!(time < rxo_frame::Duration::from_secs(1), "probed after {time:?}");
}

/// A dormant member has no timers, so the group must check it for as long as text is outstanding.
#[test]
fn nobody_sleeps_for_ever_whatever_is_lost() {
    for seed in 0..SEEDS {
        let slow = Slow::Wait;
        let config = rxo_tcp::GroupConfig { slow, ..group_config() };
        let mut room = Room::new(config, 1 + seed as usize % 6, 1_500_000);
        (room.random, room.loss) = (seed, [5, 10, 50][seed as usize % 3]);
        let began_at = room.now;
        room.run();
        assert_eq!(room.done(), room.sides.len(), "seed {seed}: {:?}", room.outcomes());
        let time = room.now - began_at;
        assert!(time < rxo_frame::Duration::from_secs(120), "seed {seed}: {time:?}");
    }
}

const SEEDS: u64 = 60;
