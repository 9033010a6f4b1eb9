//! Tests of twelve guests, one of which attacks the others, on virtual time. They count the frames that the
//! others still get.

use std::time::Duration;

use rxo::coalesce::Hold;
use rxo::device::Sent;
use rxo::frame::{ChecksumStatus, Gso, GsoKind};
use rxo::worker::Budget;
use rxo::{Frame, Instant, Policy, WorkerConfig};
use rxo_testkit::seg;

use crate::world::{BROADCAST, Ended, Event, PEER, World, addressed, fixed, mac, plain};

const GUESTS: u8 = 12;
const ATTACKER: usize = 0;
/// The guest whose traffic is checked.
const NEIGHBOUR: u8 = 7;
/// The guest that the neighbour sends to, besides the nic.
const FRIEND: u8 = 8;

/// The number of frames in a tenth of a second, in which the neighbour sends and receives a frame every 100
/// µs.
const FRAMES: u32 = 1_000;
const BETWEEN_US: u64 = 100;
/// The longest delay that a frame may have.
const LATEST: Duration = Duration::from_millis(5);

fn at_us(n: u32) -> u64 {
    1_000 + u64::from(n) * BETWEEN_US
}

/// Creates the neighbour's traffic: to and from the nic, and to a friend. The nic has room for 64 frames per
/// millisecond.
fn world() -> World {
    let world = World::new(&fixed(GUESTS));
    for n in 0..FRAMES {
        let text = n.to_be_bytes();
        world.at_us(at_us(n), Event::FromNic(plain(mac(NEIGHBOUR), PEER, &text)));
        let guest = usize::from(NEIGHBOUR);
        world.at_us(at_us(n), Event::FromGuest(guest, plain(PEER, mac(NEIGHBOUR), &text)));
        world.at_us(at_us(n), Event::FromGuest(guest, plain(mac(FRIEND), mac(NEIGHBOUR), &text)));
    }
    for ms in 0..400 {
        world.at_us(ms * 1_000, Event::NicRoom(Some(64)));
    }
    world
}

fn config() -> WorkerConfig {
    WorkerConfig { overload: None, ..WorkerConfig::new(Policy::linux_gro()) }
}

/// Asserts that `sent` contains all frames of the neighbour's traffic that come from `from`, in order and in
/// time.
fn all_in_time(sent: &[Sent], from: u8, what: &str) {
    let own = sent.iter().filter(|sent| sent.bytes[6..12] == mac(from).0);
    let mut own = own.filter(|sent| sent.bytes.len() == 14 + 4);
    for n in 0..FRAMES {
        let Some(sent) = own.next() else { panic!("{what}: frame {n} is lost") };
        assert_eq!(sent.bytes[14..], n.to_be_bytes(), "{what}");
        let late = sent.sent_at.since(Instant::from_micros(at_us(n)));
        assert!(late <= LATEST, "{what}: frame {n} was {late:?} late");
    }
}

/// Asserts that the neighbour's traffic arrives as if it were alone.
fn is_unharmed(ended: &Ended) {
    all_in_time(&ended.to_nic, NEIGHBOUR, "to the nic");
    all_in_time(&ended.to_guests[usize::from(FRIEND)], NEIGHBOUR, "to the friend");
    all_in_time(&ended.to_guests[usize::from(NEIGHBOUR)], 99, "from the nic");
    let neighbour = &ended.totals.guests[usize::from(NEIGHBOUR)];
    assert_eq!((neighbour.nic_in.ring_drops, neighbour.nic_out.dropped), (0, 0));
    assert_eq!(neighbour.over_budget, 0);
}

#[test]
fn alone_the_neighbour_has_all_its_traffic() {
    is_unharmed(&world().run_with(config()));
}

/// A flood to the nic takes nothing from the neighbour: the attacker sends ten times as many small frames as
/// the nic has room for.
#[test]
fn a_flood_of_small_frames_to_the_nic_takes_its_own_share() {
    let world = world();
    for burst in 0..1_000 {
        for _ in 0..64 {
            let frame = plain(PEER, mac(ATTACKER as u8), b"flood!!");
            world.at_us(burst * 100, Event::FromGuest(ATTACKER, frame));
        }
    }
    let ended = world.run_with(config());
    is_unharmed(&ended);
    let flood = ended.to_nic.iter().filter(|sent| sent.bytes.len() == 14 + 7).count();
    assert!(flood > 4_000, "what is left is the attacker's: {flood}");
}

fn large(to: rxo::switch::MacAddress, from: u8) -> Frame<Vec<u8>> {
    let mut large = seg().seq(1).len(60_000).frame_at(Instant::ZERO);
    large.gso = Some(Gso::new(GsoKind::TcpV4, 1_448.try_into().unwrap()));
    large.checksum = ChecksumStatus::Partial { start: 34, offset: 16 };
    addressed(large, to, mac(from))
}

#[test]
fn large_broadcasts_reach_the_others_within_the_budget() {
    let world = world();
    (0..4_000).for_each(|n| world.at_us(n * 25, Event::FromGuest(ATTACKER, large(BROADCAST, 0))));
    let ended = world.run_with(config());
    is_unharmed(&ended);
    let attacker = &ended.totals.guests[ATTACKER];
    assert_eq!(attacker.host_in.frames, attacker.nic_out.frames + attacker.nic_out.dropped_frames);
    assert_eq!(attacker.over_budget, attacker.nic_out.dropped_frames);
    // 60 kB are 42 segments. The budget allows 5,000 segments at once, and 500 more in a tenth of a second.
    let most = (Budget::STORM + Budget::STORM * 4 / 10) / 42 + 1;
    let got =
        ended.to_guests[usize::from(NEIGHBOUR)].iter().filter(|sent| sent.bytes.len() > 60_000);
    let got = got.count() as u64;
    assert!((119..=most).contains(&got), "{got} of at most {most}");
    // All eleven guests share one copy.
    let copied: u64 = ended.totals.guests.iter().map(|guest| guest.nic_in.bytes_copied_aside).sum();
    assert!(copied < (got + 5) * 61_000 + 1_000_000, "{copied} bytes");
}

/// Frames for addresses that nobody has sent from reach the wire; they reach the other guests only within the
/// budget.
#[test]
fn a_stream_to_an_unknown_address_leaves_by_the_nic() {
    const SENT: u32 = 8_000;
    let mut ports = fixed(GUESTS);
    ports[usize::from(FRIEND)].fixed = None;
    let world = World::new(&ports);
    for n in 0..SENT {
        let frame = plain(mac(50), mac(ATTACKER as u8), &n.to_be_bytes());
        world.at_us(u64::from(n) * 50, Event::FromGuest(ATTACKER, frame));
    }
    let ended = world.run_with(config());
    assert_eq!(ended.to_nic.len(), SENT as usize, "none is lost");
    let flooded = ended.to_guests[usize::from(FRIEND)].len() as u64;
    // The budget allows as many frames at once as in a second, and those of the 0.4 s that the test takes.
    let most = Budget::STORM + Budget::STORM * 4 / 10 + 10;
    assert!((Budget::STORM..=most).contains(&flooded), "{flooded}");
    let attacker = &ended.totals.guests[ATTACKER];
    assert_eq!((attacker.over_budget, attacker.nic_out.dropped), (u64::from(SENT) - flooded, 0));
}

/// The attacker reads nothing, and everybody sends to it.
#[test]
fn a_guest_that_never_reads_costs_nobody_but_itself() {
    let world = world();
    world.at_us(0, Event::GuestRoom(ATTACKER, Some(0)));
    for n in 0..FRAMES {
        for from in 1..GUESTS {
            let frame = plain(mac(0), mac(from), b"for nobody");
            world.at_us(at_us(n), Event::FromGuest(from.into(), frame));
        }
    }
    let ended = world.run_with(config());
    is_unharmed(&ended);
    let attacker = &ended.totals.guests[ATTACKER];
    let (lost, kept) = (attacker.nic_in.ring_drops, attacker.host_out.dropped);
    assert_eq!(lost + kept, u64::from(FRAMES) * u64::from(GUESTS - 1));
}

/// The attacker's frames are held for as long as any policy may hold, so that its lane, the queue to the hub,
/// has few buffers left.
#[test]
fn frames_that_are_held_for_a_guest_find_other_memory() {
    let hold = Duration::from_millis(50);
    let policy = Policy { hold: Hold::Within(hold), flows: 4_096, ..Policy::linux_gro() };
    let world = World::new(&fixed(2));
    for n in 0..4_000_u32 {
        let segment = seg().flow(n).seq(1).len(100).frame_at(Instant::ZERO);
        world.at_us(u64::from(n) * 5, Event::FromNic(addressed(segment, mac(0), PEER)));
    }
    let ended = world.run(policy);
    assert_eq!(ended.totals.guests[0].nic_in.ring_drops, 0);
    assert_eq!(ended.to_guests[0].iter().map(|sent| sent.frames).sum::<usize>(), 4_000);
}

/// Frames beyond the rate stay in the guest's own rings, and none is lost.
#[test]
fn a_guest_with_a_rate_sends_no_faster_and_loses_nothing() {
    let world = World::new(&fixed(GUESTS));
    let text = [7; 986];
    for n in 0..2_000 {
        world.at_us(n * 10, Event::FromGuest(ATTACKER, plain(PEER, mac(ATTACKER as u8), &text)));
    }
    // Frames of 1,000 bytes: 200 at once, and 10 per millisecond.
    let limit = Budget { rate: Some(10_000_000), burst: 200_000, ..Budget::default() };
    let ended = world.run_limited(config(), &[limit]);
    assert_eq!(ended.to_nic.len(), 2_000);
    for (n, sent) in ended.to_nic.iter().enumerate().skip(201) {
        let due = Duration::from_micros((n as u64 - 200) * 100);
        let at = sent.sent_at.since(Instant::ZERO);
        assert!(at >= due, "frame {n} left at {at:?}, before {due:?}");
        assert!(at <= due + LATEST, "frame {n} left at {at:?}, long after {due:?}");
    }
    let attacker = &ended.totals.guests[ATTACKER];
    assert!((1_700..=1_800).contains(&attacker.over_budget), "{}", attacker.over_budget);
    assert_eq!(attacker.nic_out.dropped, 0);
}
