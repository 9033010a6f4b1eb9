//! Every receiver gets the whole stream, whatever is lost.

use rxo_frame::Duration;
use rxo_tcp::{GroupConfig, Outcome, Repairs, Slow};

use crate::room::{FOR_EVER, Room, group_config, spread_config};

#[test]
fn each_byte_leaves_once_if_nothing_is_lost() {
    let mut room = Room::new(group_config(), 20, 3_000_000);
    room.run();
    assert_eq!(room.done(), 20, "{:?}", room.outcomes());
    // Full segments, and the rest.
    assert_eq!((room.to_group, room.to_one), ([3_000_000_u64.div_ceil(1_448), 0], 0));
}

#[test]
fn an_empty_stream_ends() {
    let mut room = Room::new(group_config(), 3, 0);
    room.run();
    assert_eq!(room.done(), 3, "{:?}", room.outcomes());
}

#[test]
fn what_is_lost_is_repaired_each_by_itself_or_for_all() {
    for repairs in [Repairs::Each, Repairs::Group { least: 2 }] {
        let mut room = Room::new(GroupConfig { repairs, ..group_config() }, 30, 400_000);
        room.links.loss = 20;
        room.run();
        assert_eq!(room.done(), 30, "{repairs:?}: {:?}", room.outcomes());
        assert_eq!(room.to_group[1] > 0, repairs != Repairs::Each, "{repairs:?}");
    }
}

/// Six times the largest group in the paper. `rxo-lab bench instructions` counts the cost of an ACK in one.
#[test]
fn a_thousand_receivers() {
    let mut room = Room::new(group_config(), 1_000, 100_000);
    room.links.loss = 2;
    room.run();
    assert_eq!(room.done(), 1_000);
    let sent: u64 = room.to_group.iter().sum();
    assert!(sent + room.to_one < 10 * 70, "{sent} to all, {} to one", room.to_one);
}

/// The largest group in the paper (section 4.1) with additional faults: 1 % loss to and from each receiver,
/// one receiver that is killed, and one that pauses for 3 s.
#[test]
fn a_hundred_and_sixty_eight_receivers() {
    let mut room = Room::new(group_config(), 168, 500_000);
    room.links.loss = 10;
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 100_000);
    let begun = room.now;
    room.receivers[5].absent_until = FOR_EVER;
    room.receivers[6].absent_until = room.now + Duration::from_secs(3);
    room.finish();
    assert_eq!(room.done(), 167, "{:?}", room.outcomes());
    let ejected = Some(Outcome::Ejected(Duration::from_secs(10)));
    assert_eq!(room.sides[5].outcome, ejected);
    let time = room.now - begun;
    assert!(time < Duration::from_secs(60), "{time:?}");
}

/// Behind a slow link acknowledgements come late: the queue in front of it grows, and receivers acknowledge
/// few segments (`rxo cast receive`: one of sixteen). No probe may treat segments in flight as lost, with or
/// without dormant members: each repair would take the link's time from all receivers and cause an answer
/// from each.
#[test]
fn nothing_is_repeated_that_is_only_slow() {
    for is_sleepless in [false, true] {
        let mut room = Room::new(group_config(), 0, 2_000_000);
        room.is_sleepless = is_sleepless;
        // 40 Mbit/s.
        room.links.byte_time = Duration::from_nanos(200);
        for number in 0..60 {
            room.come(spread_config(number % 16));
        }
        room.run();
        assert_eq!(room.done(), 60, "{:?}", room.outcomes());
        assert_eq!((room.to_group[1], room.to_one), (0, 0), "{is_sleepless}");
    }
}

/// Receivers report the same missing segment at different times, as they do if it was lost before the first
/// switch. It is sent to the first that reports it, to the group when a second one does, and not again for
/// the others.
#[test]
fn what_all_miss_is_repeated_once_though_they_say_so_one_after_another() {
    let mut room = Room::new(group_config(), 0, 200_000);
    for number in 0..40 {
        room.come(spread_config(number % 16));
    }
    room.stagger = Duration::from_micros(100);
    room.lost_by_all = Some(70);
    room.run();
    assert_eq!(room.done(), 40, "{:?}", room.outcomes());
    assert_eq!((room.to_group[1], room.to_one), (1, 1));
}

/// The receiver is like an unmodified host behind `rxo cast join`: it leaves the group when it has
/// acknowledged the FIN, and closes later. The last acknowledgement is lost, so the FIN comes again, and the
/// group's address no longer reaches the receiver.
#[test]
fn whoever_has_left_the_group_gets_the_fin_again() {
    for slow in [Slow::Wait, Slow::Eject(Duration::from_secs(10))] {
        let mut room = Room::new(GroupConfig { slow, ..group_config() }, 6, 100_000);
        for receiver in &mut room.receivers[..3] {
            (receiver.leaves_early, receiver.last_acks_lost) = (true, 1);
            // It does not close by itself.
            receiver.is_done = true;
        }
        room.begin();
        let closes = room.now + Duration::from_secs(30);
        room.run_until(|room| room.now >= closes || room.is_all_acknowledged());
        assert!(room.now < closes, "{slow:?}");
        for number in 0..3 {
            let _ = room.receivers[number].tcp.shutdown();
            room.read_again(number);
        }
        room.finish();
        assert_eq!(room.done(), 6, "{slow:?}: {:?}", room.outcomes());
    }
}
