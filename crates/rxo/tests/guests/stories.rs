//! Tests of the frames that guests get, with a test for each rule.

use std::time::Duration;

use rxo::coalesce::Hold;
use rxo::device::Sent;
use rxo::frame::{ChecksumStatus, Gso, GsoKind};
use rxo::switch::MacAddress;
use rxo::worker::Coalesce;
use rxo::{Frame, Instant, Policy, WorkerConfig};
use rxo_testkit::seg;

use crate::world::{BROADCAST, Event, PEER, World, access, fixed, mac, plain};

const SEGMENT_BYTES: u32 = 1_448;

/// Creates the `index`-th segment of a bulk flow to a guest.
fn bulk(guest: u8, index: u32) -> Frame<Vec<u8>> {
    let segment = seg().flow(guest.into()).seq(100 + index * SEGMENT_BYTES);
    let frame = segment.len(SEGMENT_BYTES as usize).frame_at(Instant::ZERO);
    crate::world::addressed(frame, mac(guest), PEER)
}

fn frames(sent: &[Sent]) -> Vec<usize> {
    sent.iter().map(|sent| sent.frames).collect()
}

fn texts(sent: &[Sent]) -> Vec<&[u8]> {
    sent.iter().map(|sent| &sent.bytes[14..]).collect()
}

#[test]
fn each_guest_gets_its_own_aggregates() {
    let world = World::new(&fixed(4));
    for index in 0..10 {
        for guest in 0..4 {
            world.at_us(0, Event::FromNic(bulk(guest, index)));
        }
    }
    let ended = world.run(Policy::linux_gro());
    for (guest, sent) in ended.to_guests.iter().enumerate() {
        assert_eq!(frames(sent), [10], "guest {guest}");
        assert_eq!(ended.totals.guests[guest].nic_in.frames, 10);
        assert_eq!(ended.totals.guests[guest].engine.aggregates, 1);
    }
    assert_eq!(ended.totals.all.nic_in.frames, 40);
    assert!(ended.to_nic.is_empty());
}

/// A guest that leaves is forgotten: another guest behind its socket must not get frames for it.
#[test]
fn a_guest_that_goes_is_forgotten() {
    for leaves in [false, true] {
        let world = World::new(&[access(0, None), access(0, None)]);
        world.at_us(0, Event::FromGuest(0, plain(PEER, mac(7), b"here")));
        if leaves {
            world.at_us(10, Event::GuestGone(0));
        }
        world.at_us(1_000, Event::FromNic(plain(mac(7), PEER, b"there?")));
        let ended = world.run(Policy::linux_gro());
        let reached = ended.to_guests.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(reached, if leaves { [1, 2] } else { [1, 1] }, "leaves: {leaves}");
    }
}

#[test]
fn with_coalescing_off_each_guest_gets_the_frames_as_they_came() {
    let world = World::new(&fixed(4));
    for index in 0..10 {
        for guest in 0..4 {
            world.at_us(0, Event::FromNic(bulk(guest, index)));
        }
    }
    let config = WorkerConfig { coalesce: Coalesce::Off, ..WorkerConfig::new(Policy::linux_gro()) };
    let ended = world.run_with(config);
    for (sent, reading) in ended.to_guests.iter().zip(&ended.totals.guests) {
        assert_eq!(frames(sent), [1; 10]);
        assert_eq!((reading.coalescing.passed, reading.engine.frames), (10, 0));
    }
    let all = ended.totals.all.coalescing;
    assert_eq!((all.passed, all.is_on, all.asked), (40, false, Coalesce::Off));
}

#[test]
fn groups_and_unknown_addresses_reach_everybody_else() {
    let world = World::new(&[crate::world::access(0, None); 3]);
    let unknown = mac(50);
    let multicast = MacAddress([0x33, 0x33, 0, 0, 0, 1]);
    for (n, to) in [BROADCAST, multicast, unknown].into_iter().enumerate() {
        world.at_us(n as u64 * 100, Event::FromNic(plain(to, PEER, &[n as u8])));
    }
    world.at_us(1_000, Event::FromGuest(1, plain(BROADCAST, mac(1), b"from 1")));
    let ended = world.run(Policy::linux_gro());
    for guest in [0, 2] {
        assert_eq!(texts(&ended.to_guests[guest]), [&[0][..], &[1], &[2], b"from 1"]);
    }
    assert_eq!(texts(&ended.to_guests[1]), [[0], [1], [2]], "not what it sent itself");
    assert_eq!(texts(&ended.to_nic), [b"from 1"]);
    let copied = ended.totals.guests.iter().map(|guest| guest.nic_in.bytes_copied_aside);
    let (of_nic, of_guest) = (3 * (14 + 1), 14 + 6);
    assert!(copied.eq([of_nic + of_guest, 0, 0]), "one copy for all");
}

#[test]
fn a_guest_that_has_sent_gets_its_frames_alone() {
    let world = World::new(&[crate::world::access(0, None); 2]);
    world.at_us(0, Event::FromGuest(0, plain(PEER, mac(0), b"question")));
    world.at_us(100, Event::FromNic(plain(mac(0), PEER, b"answer")));
    let ended = world.run(Policy::linux_gro());
    assert_eq!(texts(&ended.to_nic), [b"question"]);
    assert_eq!(texts(&ended.to_guests[0]), [b"answer"]);
    assert_eq!(texts(&ended.to_guests[1]), [b"question"], "nobody knew the peer yet");
}

/// A GSO frame is not cut, and its checksum stays partial.
#[test]
fn a_large_send_passes_whole_from_guest_to_guest() {
    let world = World::new(&fixed(2));
    let mut large = seg().seq(1).len(40_000).frame_at(Instant::ZERO);
    large.gso = Some(Gso::new(GsoKind::TcpV4, 1_448.try_into().unwrap()));
    large.checksum = ChecksumStatus::Partial { start: 34, offset: 16 };
    let large = crate::world::addressed(large, mac(1), mac(0));
    world.at_us(0, Event::FromGuest(0, large.clone()));
    let ended = world.run(Policy::linux_gro());
    let [sent] = &ended.to_guests[1][..] else { panic!("{}", ended.to_guests[1].len()) };
    assert!(sent.bytes == large.bytes);
    assert_eq!((sent.offload.gso, sent.offload.checksum), (large.gso, large.checksum));
    assert!(ended.to_nic.is_empty(), "it does not leave the machine");
}

/// Guest 0 reads nothing for a while. Its queue is bounded, the frames that do not fit are counted, and it
/// gets the rest.
#[test]
fn a_guest_that_does_not_read_delays_nobody() {
    let world = World::new(&fixed(3));
    world.at_us(0, Event::GuestRoom(0, Some(0)));
    for n in 0..4_000_u32 {
        let at = 100 + u64::from(n) * 10;
        let text = n.to_be_bytes();
        world.at_us(at, Event::FromNic(plain(mac(0), PEER, &text)));
        world.at_us(at, Event::FromNic(plain(mac(1), PEER, &text)));
        world.at_us(at, Event::FromGuest(1, plain(mac(2), mac(1), &text)));
        world.at_us(at, Event::FromGuest(0, plain(PEER, mac(0), &text)));
    }
    world.at_us(50_000, Event::GuestRoom(0, None));
    let ended = world.run(Policy::linux_gro());
    let all: Vec<[u8; 4]> = (0..4_000_u32).map(u32::to_be_bytes).collect();
    for (sent, whose) in
        [(&ended.to_guests[1], "1"), (&ended.to_guests[2], "2"), (&ended.to_nic, "nic")]
    {
        assert_eq!(texts(sent), all, "{whose} lost something");
        for (n, sent) in sent.iter().enumerate() {
            let waited = sent.sent_at.since(Instant::from_micros(100 + n as u64 * 10));
            assert!(waited <= Duration::from_micros(200), "{whose}: {n} waited {waited:?}");
        }
    }
    let stalled = &ended.totals.guests[0];
    let (got, lost) = (ended.to_guests[0].len() as u64, stalled.nic_in.ring_drops);
    assert_eq!(got + lost, 4_000);
    assert!((1_024..2_000).contains(&got), "{got}");
    assert_eq!(texts(&ended.to_guests[0]), all[..got as usize], "the oldest, in order");
    // The worker does not spin while it waits.
    assert!(ended.waits < 9_000, "{} waits", ended.waits);
}

/// Guest 0 never reads. All frames for it are counted when the run ends.
#[test]
fn what_a_guest_has_not_taken_at_the_end_is_counted() {
    let world = World::new(&fixed(2));
    world.at_us(0, Event::GuestRoom(0, Some(0)));
    for n in 0..700_u64 {
        world.at_us(100 + n, Event::FromNic(plain(mac(0), PEER, b"late")));
    }
    let ended = world.run(Policy::linux_gro());
    let guest = &ended.totals.guests[0];
    assert_eq!(ended.to_guests[0].len(), 0);
    assert_eq!(guest.nic_in.ring_drops + guest.host_out.dropped, 700, "{guest:?}");
}

/// The nic disappears while more frames are queued for guest 0 than a turn takes.
#[test]
fn a_guest_gets_what_was_queued_for_it_before_the_nic_went() {
    let world = World::new(&fixed(2));
    world.at_us(0, Event::GuestRoom(0, Some(0)));
    for n in 0..700_u64 {
        world.at_us(100 + n, Event::FromNic(plain(mac(0), PEER, b"late")));
    }
    world.at_us(5_000, Event::GuestRoom(0, None));
    world.at_us(5_000, Event::NicGone);
    let ended = world.run(Policy::linux_gro());
    assert!(ended.result.is_err());
    assert_eq!(ended.to_guests[0].len(), 700);
}

#[test]
fn a_nic_without_room_loses_nothing_and_delays_nothing_that_it_gives() {
    let world = World::new(&fixed(2));
    world.at_us(0, Event::NicRoom(Some(0)));
    for n in 0..1_000_u32 {
        let at = 100 + u64::from(n) * 10;
        world.at_us(at, Event::FromNic(plain(mac(0), PEER, &n.to_be_bytes())));
        world.at_us(at, Event::FromGuest(1, plain(PEER, mac(1), &n.to_be_bytes())));
    }
    world.at_us(20_000, Event::NicRoom(None));
    let ended = world.run(Policy::linux_gro());
    assert_eq!((ended.to_guests[0].len(), ended.to_nic.len()), (1_000, 1_000));
    for (n, sent) in ended.to_guests[0].iter().enumerate() {
        let waited = sent.sent_at.since(Instant::from_micros(100 + n as u64 * 10));
        assert!(waited <= Duration::from_micros(200), "{n} waited {waited:?}");
    }
}

/// The nic takes nothing for 300 ms. Guest 0 floods it, guest 1 sends to it and to guest 2, guest 3 to guest 2 only.
#[test]
fn a_nic_without_room_delays_nothing_between_guests() {
    const SENT: u32 = 1_000;
    let world = World::new(&fixed(4));
    world.at_us(0, Event::NicRoom(Some(0)));
    let at_us = |n: u32| 100 + u64::from(n) * 200;
    for n in 0..SENT {
        let text = n.to_be_bytes();
        for (from, to) in [(0, PEER), (0, PEER), (1, PEER), (1, mac(2)), (3, mac(2))] {
            world.at_us(at_us(n), Event::FromGuest(from, plain(to, mac(from as u8), &text)));
        }
    }
    world.at_us(300_000, Event::NicRoom(None));
    let ended = world.run(Policy::linux_gro());
    // Frames of guest 1 for the nic stop it for a while, until the nic counts as stuck.
    for (from, most) in [(3, Duration::from_micros(200)), (1, Duration::from_millis(101))] {
        let own = ended.to_guests[2].iter().filter(|sent| sent.bytes[6..12] == mac(from).0);
        let own: Vec<_> = own.collect();
        assert_eq!(own.len() as u32, SENT, "from {from}");
        for (n, sent) in own.iter().enumerate() {
            assert_eq!(sent.bytes[14..], (n as u32).to_be_bytes());
            let waited = sent.sent_at.since(Instant::from_micros(at_us(n as u32)));
            assert!(waited <= most, "from {from}: {n} waited {waited:?}");
        }
    }
    // Frames that waited are sent when the nic has free space, and the others are counted.
    let lost: Vec<_> = ended.totals.guests.iter().map(|it| it.nic_out.dropped_frames).collect();
    assert_eq!(ended.to_nic.len() as u64 + lost.iter().sum::<u64>(), u64::from(3 * SENT));
    for (guest, sent) in [(0, 2 * SENT), (1, SENT)] {
        let left = ended.to_nic.iter().filter(|sent| sent.bytes[6..12] == mac(guest).0).count();
        assert_eq!(left as u64 + lost[usize::from(guest)], u64::from(sent));
        assert!(left >= 64, "guest {guest}: {left}");
    }
    assert_eq!((lost[2], lost[3]), (0, 0));
}

/// Under a policy that counts polls, only the polls of the guest itself count, not those of other guests.
#[test]
fn the_polls_of_one_guest_decide_nothing_for_another() {
    let policy = Policy { max_hold: Duration::from_millis(50), ..Policy::xen_delayed() };
    let world = World::new(&fixed(2));
    world.at_us(0, Event::FromNic(bulk(0, 0)));
    world.at_us(0, Event::FromNic(bulk(0, 1)));
    for n in 0..8 {
        world.at_us(1_000 + 100 * n, Event::FromNic(plain(mac(1), PEER, b"a poll")));
    }
    world.at_us(5_000, Event::FromNic(bulk(0, 2)));
    let ended = world.run(policy);
    assert_eq!(frames(&ended.to_guests[0]), [3]);
    assert!(ended.to_guests[0][0].sent_at >= Instant::from_micros(5_000));
    assert_eq!(ended.to_guests[1].len(), 8);
}

#[test]
fn what_a_guest_holds_leaves_when_its_time_is_over() {
    let hold = Duration::from_micros(500);
    let policy = Policy { hold: Hold::Within(hold), ..Policy::linux_gro() };
    let world = World::new(&fixed(3));
    (0..3).for_each(|index| world.at_us(0, Event::FromNic(bulk(1, index))));
    let ended = world.run(policy);
    let [sent] = &ended.to_guests[1][..] else { panic!("{}", ended.to_guests[1].len()) };
    let held = sent.sent_at.since(Instant::ZERO);
    assert!((hold..hold + Duration::from_micros(50)).contains(&held), "{held:?}");
}

#[test]
fn a_nic_that_is_gone_ends_the_run_after_everything_held_was_sent() {
    let policy = Policy { hold: Hold::Within(Duration::from_millis(50)), ..Policy::linux_gro() };
    let world = World::new(&fixed(2));
    (0..3).for_each(|index| world.at_us(0, Event::FromNic(bulk(0, index))));
    world.at_us(10, Event::NicGone);
    let ended = world.run(policy);
    assert!(ended.result.is_err());
    assert_eq!(frames(&ended.to_guests[0]), [3]);
}

#[test]
fn reports_are_differences_and_add_up() {
    let world = World::new(&fixed(2));
    for n in 0..100 {
        world.at_us(n * 100, Event::FromNic(plain(mac((n % 2) as u8), PEER, b"x")));
    }
    world.at_us(10_500, Event::Stop);
    let report_every = Some(Duration::from_millis(1));
    let ended = world.run_with(WorkerConfig {
        report_every,
        overload: None,
        ..WorkerConfig::new(Policy::linux_gro())
    });
    assert!(ended.reports.len() >= 9, "{}", ended.reports.len());
    let mut last = rxo::worker::Readings::default();
    let mut sum = [0, 0];
    for report in ended.reports.iter().chain([&ended.totals]) {
        let interval = report.since(&last);
        let of_guests = interval.guests.iter().map(|guest| guest.nic_in.frames);
        of_guests.zip(&mut sum).for_each(|(frames, sum)| *sum += frames);
        last = report.clone();
    }
    assert_eq!((sum, ended.totals.switch.unwrap().forwarded), ([50, 50], 100));
}
