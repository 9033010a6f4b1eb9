//! A cast yields to an ordinary connection on the same link, and takes its own part.

use std::rc::Rc;

use rxo_frame::{Duration, Instant};

use crate::room::{Room, group_config, spread_config};
use crate::unicasts::Unicasts;

/// Returns the share of a cast on a link of 20 Mbit/s, relative to a fair share beside one connection, after
/// `receivers` receivers have each lost `loss` of 1000 segments.
fn share(receivers: u16, loss: u64) -> f64 {
    let mut room = Room::new(group_config(), 0, 40_000_000);
    let mut rival = Unicasts::new(1, 40_000_000);
    for links in [&mut room.links, &mut rival.links] {
        (links.byte_time, links.most_queued) = (BYTE_TIME, Duration::from_millis(20));
    }
    rival.links.free_at = Rc::clone(&room.links.free_at);
    (0..receivers).for_each(|number| {
        room.come(spread_config(number % 16));
    });
    room.begin();

    room.links.loss = loss;
    rival.begin();
    let at = |seconds: u64| Instant::from_micros(1_000_000 * (1 + seconds));
    run(&mut room, &mut rival, at(2));
    let before = (room.group.progress().slowest, rival.read());
    run(&mut room, &mut rival, at(14));
    let cast = (room.group.progress().slowest - before.0) as f64;
    2.0 * cast / (cast + (rival.read() - before.1) as f64)
}

/// Runs both senders in the order of their events.
fn run(room: &mut Room, rival: &mut Unicasts, until: Instant) {
    while room.now.min(rival.now) < until {
        if room.next_event() <= rival.next_event() {
            room.step();
        } else {
            rival.step();
        }
    }
}

#[test]
fn a_cast_shares_a_link_with_one_connection() {
    for receivers in [1, 5, 20] {
        let share = share(receivers, 0);
        assert!((0.3..1.2).contains(&share), "{receivers} receivers: {share}");
    }
}

/// Losses between the first switch and single receivers take little of the fair share from the group.
#[test]
fn a_cast_keeps_its_part_when_its_receivers_lose_some() {
    let share = share(5, 1);
    assert!((0.3..1.2).contains(&share), "{share}");
}

/// The time that a link of 20 Mbit/s needs for a byte.
const BYTE_TIME: Duration = Duration::from_nanos(400);
