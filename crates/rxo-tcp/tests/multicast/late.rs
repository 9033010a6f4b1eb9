//! Receivers that join after the first byte.

use rxo_frame::Duration;
use rxo_tcp::{GroupConfig, Late, Outcome, Refusal};

use crate::links::ROUND_TRIP;
use crate::room::{FOR_EVER, ISS, Room, group_config, receiver_config, spread_config};

fn room(late: Late, bytes: usize) -> Room {
    begun(GroupConfig { late, ..group_config() }, bytes)
}

fn begun(config: GroupConfig, bytes: usize) -> Room {
    let mut room = Room::new(config, 5, bytes);
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

/// A late receiver gets the missed text by its own connection; the others do not wait for it until it has
/// caught up. Here they wait meanwhile for another one, which does not read.
#[test]
fn who_comes_late_catches_up() {
    for loss in [0, 10] {
        let mut room = room(Late::CatchUp, 6_000_000);
        room.links.loss = loss;
        room.receivers[0].reads_at_most = room.receivers[0].read;
        let late = room.come(receiver_config());
        room.run_until(|room| room.group.progress().catching_up == 1);
        room.run_until(|room| room.group.progress().catching_up == 0);
        assert!(room.sides[late].outcome.is_none(), "it is a member like any other");
        room.receivers[0].reads_at_most = usize::MAX;
        room.read_again(0);
        room.finish();
        assert_eq!(room.done(), 6, "{:?}", room.outcomes());
    }
}

/// A receiver that restarts joins as a new one.
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

/// A late receiver that reads nothing is asked for no more text than its connection takes, and is ejected in
/// the end.
#[test]
fn who_comes_late_and_reads_nothing_does_not_keep_the_sender_busy() {
    let small = GroupConfig { late: Late::CatchUp, buffer_bytes: 64 << 10, ..group_config() };
    let mut room = begun(small, 4_000_000);
    let late = room.come(receiver_config());
    room.receivers[late].reads_at_most = 0;
    room.finish();
    assert_eq!(room.sides[late].outcome, Some(Outcome::Ejected(Duration::from_secs(10))));
    assert_eq!(room.done(), 5, "{:?}", room.outcomes());
}

/// Returns a room with a late receiver that has filled its window, the last part by segments to the group,
/// and reads nothing more.
fn catches_up_and_stops() -> (Room, usize) {
    let config = GroupConfig { late: Late::CatchUp, ..group_config() };
    let mut room = Room::new(config, 5, 20_000_000);
    room.links.byte_time = Duration::from_nanos(800);
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 2_000_000);
    let late = room.come(spread_config(3));
    room.receivers[late].reads_at_most = 2_000_000;
    // Less than one segment of its window is left.
    let full = 2_000_000 + (2 << 20) - 1_448;
    let took = |room: &Room| room.receivers[late].tcp.statistics().rcv_nxt - ISS;
    room.run_until(|room| took(room) > full || room.sides[late].outcome.is_some());
    assert!(room.sides[late].outcome.is_none());
    (room, late)
}

/// A receiver that fills its window while it catches up has more text than its own connection has sent, and
/// more than its last known window covered. That is no error.
#[test]
fn who_catches_up_by_what_the_group_sends_may_pause() {
    let (mut room, late) = catches_up_and_stops();
    let until = room.now + Duration::from_secs(5);
    room.run_until(|room| room.now >= until);
    room.receivers[late].reads_at_most = usize::MAX;
    room.read_again(late);
    room.finish();
    assert_eq!(room.done(), 6, "{:?}", room.outcomes());
}

/// The reset has the sequence number that the receiver expects (RFC 5961, section 3), wherever its own
/// connection is.
#[test]
fn who_is_ejected_while_it_catches_up_is_told_at_once() {
    let (mut room, late) = catches_up_and_stops();
    room.run_until(|room| room.sides[late].outcome.is_some());
    assert_eq!(room.sides[late].outcome, Some(Outcome::Ejected(Duration::from_secs(10))));
    let behind = room.leaves_after();
    room.run_until(|room| room.receivers[late].tcp.is_closed() || room.now > behind + ROUND_TRIP);
    assert!(room.receivers[late].tcp.is_closed(), "it is told");
}

/// The group's numbers that a late receiver gets are those of the next byte. It gets the text from that
/// position, and no receiver waits for it.
#[test]
fn who_comes_late_gets_what_follows_from_now_on() {
    for loss in [0, 10] {
        let mut room = room(Late::FromNow, 6_000_000);
        room.links.loss = loss;
        let late = room.come(receiver_config());
        let start = room.receivers[late].start;
        assert!(start > 2_000_000, "it starts at {start}");
        room.run_until(|room| room.sides[late].id.is_some());
        assert!(room.group.progress().sent > start as u64, "the others did not wait");
        room.finish();
        assert_eq!(room.done(), 6, "{loss}: {:?}", room.outcomes());
        let got = room.receivers[late].tcp.statistics().rcv_nxt - (ISS + 1 + start as u32);
        // One more for the FIN.
        assert_eq!(got as usize, 6_000_000 - start + 1);
    }
}

/// A receiver that asked before the first byte gets everything, even if it becomes a member later.
#[test]
fn who_asks_before_the_first_byte_gets_all_from_now_on() {
    let config = GroupConfig { late: Late::FromNow, ..group_config() };
    let mut room = Room::new(config, 5, 3_000_000);
    room.run_until(|room| room.group.receivers() == 5);
    let early = room.come(receiver_config());
    room.start();
    let sent = room.group.progress().sent;
    assert!(sent > 0 && room.sides[early].id.is_none());
    room.finish();
    assert_eq!((room.receivers[early].start, room.done()), (0, 6), "{:?}", room.outcomes());
}

/// The shared time of all late receivers: one minute here.
const LATE_TIME: Duration = Duration::from_secs(60);

/// Lets `time` pass, or less if all receivers have ended.
fn pass(room: &mut Room, time: Duration) {
    let until = room.now + time;
    let has_ended = |room: &Room| room.sides.iter().all(|it| it.id.is_none());
    room.run_until(|room| room.now >= until || has_ended(room));
}

/// The receivers in time have the stream. Strangers join one after the other, each before the last has ended,
/// and read as slowly as `--slow` permits. Together they keep the sender for the shared time of late
/// receivers, whatever their number.
#[test]
fn who_keeps_coming_late_keeps_the_sender_for_a_bounded_time() {
    let mut room = room(Late::CatchUp, 4_000_000);
    let mut strangers = Vec::new();
    let begun = room.now;
    while room.group.receivers() > 0 {
        let stranger = room.come(receiver_config());
        room.receivers[stranger].reads_at_most = 0;
        strangers.push(stranger);
        for _ in 0..4 {
            pass(&mut room, Duration::from_secs(1));
            room.receivers[stranger].reads_at_most += 3_000;
            room.read_again(stranger);
        }
        let kept = room.now - begun;
        assert!(kept < LATE_TIME + Duration::from_secs(15), "{kept:?}");
    }
    assert!(strangers.len() >= 10, "{} came", strangers.len());
    assert!((0..5).all(|number| room.is_done(number)), "{:?}", room.outcomes());
    let cut = Some(Outcome::LateTimeOver(LATE_TIME));
    assert!(strangers.iter().any(|it| room.sides[*it].outcome == cut), "{:?}", room.outcomes());
    // A receiver that comes now gets none of the group's numbers, but a reason for the refusal.
    assert!(room.group.is_too_late());
    let refused = room.come(receiver_config());
    room.finish();
    assert_eq!(room.sides[refused].refused, Some(Refusal::LateTimeOver));
    room.run_until(|room| room.receivers[refused].tcp.is_closed());
    assert!(room.receivers[refused].tcp.is_closed());
}

/// A late receiver has caught up, and then accepts a segment from time to time, for which all others wait.
#[test]
fn who_comes_late_and_trickles_holds_the_others_up_for_a_bounded_time() {
    for late in [Late::CatchUp, Late::FromNow] {
        let mut room = room(late, 6_000_000);
        let trickles = room.come(receiver_config());
        room.receivers[trickles].reads_at_most = room.receivers[trickles].start + 3_000_000;
        let begun = room.now;
        while room.group.receivers() > 0 {
            pass(&mut room, Duration::from_secs(2));
            room.receivers[trickles].reads_at_most += 3_000;
            room.read_again(trickles);
            let held = room.now - begun;
            assert!(held < LATE_TIME + Duration::from_secs(15), "{late:?}: {held:?}");
        }
        let cut = Some(Outcome::LateTimeOver(LATE_TIME));
        assert_eq!((room.sides[trickles].outcome, room.done()), (cut, 5), "{late:?}");
    }
}

/// While a receiver in time delays the group, the clock of the late receivers does not run.
#[test]
fn time_in_which_the_others_are_slow_is_not_counted() {
    let slow = rxo_tcp::Slow::Wait;
    let mut room = begun(GroupConfig { late: Late::CatchUp, slow, ..group_config() }, 8_000_000);
    room.receivers[2].reads_at_most = room.receivers[2].read;
    let late = room.come(receiver_config());
    pass(&mut room, LATE_TIME * 3);
    assert!(room.sides[late].id.is_some(), "{:?}", room.outcomes());
    room.receivers[2].reads_at_most = usize::MAX;
    room.read_again(2);
    room.finish();
    assert_eq!(room.done(), 6, "{:?}", room.outcomes());
}

/// The only receiver restarts just before its end, and has the time of late receivers to get everything
/// again.
#[test]
fn a_receiver_that_restarts_near_the_end_gets_everything() {
    let mut room = Room::new(GroupConfig { late: Late::CatchUp, ..group_config() }, 1, 8_000_000);
    room.begin();
    room.run_until(|room| room.group.progress().slowest > 6_500_000);
    room.receivers[0].absent_until = FOR_EVER;
    pass(&mut room, Duration::from_secs(8));
    let again = room.come(receiver_config());
    room.finish();
    assert_eq!(room.sides[0].outcome, Some(Outcome::Ejected(Duration::from_secs(10))));
    assert_eq!(room.sides[again].outcome, Some(Outcome::Done));
}
