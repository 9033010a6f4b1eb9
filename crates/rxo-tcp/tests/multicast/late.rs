//! Receivers that come after the first byte.

use rxo_frame::Duration;
use rxo_tcp::{GroupConfig, Late, Outcome, Refusal};

use crate::room::{FOR_EVER, Room, group_config, receiver_config};

fn room(late: Late, bytes: usize) -> Room {
    let mut room = Room::new(GroupConfig { late, ..group_config() }, 5, bytes);
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 2_000_000);
    room
}

#[test]
fn who_comes_late_is_refused() {
    let mut room = room(Late::Refuse, 4_000_000);
    let late = room.come(receiver_config());
    room.finish();
    assert_eq!((room.sides[late].refused, room.done()), (Some(Refusal::Late), 5));
    assert!(room.receivers[late].tcp.is_closed());
}

/// It gets what it missed by its own connection; the others do not wait for it until it is where they are. Here they
/// wait for another meanwhile.
#[test]
fn who_comes_late_catches_up() {
    for loss in [0, 10] {
        let mut room = room(Late::CatchUp, 6_000_000);
        room.loss = loss;
        room.receivers[0].absent_until = room.now + Duration::from_secs(3);
        let late = room.come(receiver_config());
        room.run_until(|room| room.group.progress().catching_up == 1);
        room.run_until(|room| room.group.progress().catching_up == 0);
        assert!(room.sides[late].outcome.is_none(), "it is a member like any other");
        room.finish();
        assert_eq!(room.done(), 6, "{:?}", room.outcomes());
    }
}

/// A receiver that restarts comes as a new one.
#[test]
fn a_receiver_that_restarts_gets_everything() {
    let mut room = room(Late::CatchUp, 8_000_000);
    room.receivers[2].absent_until = FOR_EVER;
    let again = room.come(receiver_config());
    room.finish();
    assert_eq!(room.sides[2].outcome, Some(Outcome::Ejected(Duration::from_secs(10))));
    assert_eq!(room.sides[again].outcome, Some(Outcome::Done));
    assert_eq!(room.done(), 5, "{:?}", room.outcomes());
}
