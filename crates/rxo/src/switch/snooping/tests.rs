//! Tests of group memberships on virtual time.

use std::net::{Ipv4Addr, Ipv6Addr};

use rxo_wire::checksum::Sum;

use super::*;

const WIRE: Port = Port::nth(0);
const GUEST: Port = Port::nth(1);
const OTHER: Port = Port::nth(2);
/// The Ethernet addresses of the groups 239.1.2.3 and ff0e::102:3.
const GROUP: MacAddress = MacAddress([0x01, 0, 0x5e, 1, 2, 3]);
const GROUP_V6: MacAddress = MacAddress([0x33, 0x33, 1, 2, 0, 3]);
const GROUP_BYTES: [u8; 4] = [239, 1, 2, 3];

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Builds a frame with this IGMP message, with padding as on a wire.
fn igmp(message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    let checksum = !Sum::of(&message).fold();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = [&[0; 12][..], &[8, 0, 0x46, 0]].concat();
    frame.extend((24 + message.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 1, 2, 0, 0]);
    frame.extend(Ipv4Addr::new(10, 0, 0, 1).octets());
    frame.extend([224, 0, 0, 22, 0x94, 4, 0, 0]);
    frame.extend(&message);
    frame.resize(frame.len().max(60), 0xee);
    frame
}

/// Builds a frame with this MLD message after a router alert.
fn mld(message: &[u8]) -> Vec<u8> {
    let [source, destination] = ["fe80::1", "ff02::16"].map(|ip| ip.parse::<Ipv6Addr>().unwrap());
    let mut message = message.to_vec();
    let pseudo = [&source.octets()[..], &destination.octets()].concat();
    let sum = Sum::of(&pseudo).plus(Sum::longs([message.len() as u32, 58]));
    let checksum = !sum.plus(Sum::of(&message)).fold();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = [&[0; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend((8 + message.len() as u16).to_be_bytes());
    frame.extend([0, 1]);
    frame.extend(pseudo);
    frame.extend([58, 0, 5, 2, 0, 0, 1, 0]);
    frame.extend(&message);
    frame
}

fn of_group(kind: u8) -> Vec<u8> {
    igmp(&[&[kind, 0, 0, 0][..], &GROUP_BYTES].concat())
}

/// Builds a report of IGMPv3 with one record.
fn record(kind: u8, sources: u8) -> Vec<u8> {
    let sources_bytes = vec![9; usize::from(sources) * 4];
    igmp(
        &[&[0x22, 0, 0, 0, 0, 0, 0, 1, kind, 0, 0, sources][..], &GROUP_BYTES, &sources_bytes]
            .concat(),
    )
}

/// A network with a router at the first of three ports.
struct World {
    snooping: Snooping,
    now: Instant,
}

impl World {
    /// Creates the network; the router has just sent a query.
    fn new() -> Self {
        let mut world = Self { snooping: Snooping::new(3), now: at(1_000) };
        world.ask();
        world
    }

    fn ask(&mut self) {
        self.send(WIRE, GROUP, &igmp(&[0x11, 100, 0, 0, 0, 0, 0, 0]));
        self.send(
            WIRE,
            GROUP_V6,
            &mld(&[&[130, 0, 0, 0, 0x27, 0x10, 0, 0][..], &[0; 16]].concat()),
        );
    }

    fn send(&mut self, from: Port, group: MacAddress, frame: &[u8]) -> Receivers {
        let packet = Packet::read(frame);
        self.snooping.receivers((from, from == WIRE), (0, group), &packet, self.now)
    }

    /// Returns the members that a frame for the group reaches.
    fn reached(&mut self, group: MacAddress) -> Vec<Port> {
        match self.send(WIRE, group, &[0; 60]) {
            Receivers::Members(members) => members.collect(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_group_reaches_those_who_joined_and_no_longer_those_who_left() {
    for (join, leave) in [(of_group(0x16), of_group(0x17)), (record(4, 0), record(3, 0))] {
        let mut world = World::new();
        assert_eq!(world.reached(GROUP), []);
        assert_eq!(world.send(GUEST, GROUP, &join), Receivers::Routers);
        assert_eq!(world.reached(GROUP), [GUEST]);
        world.send(OTHER, GROUP, &join);
        world.send(GUEST, GROUP, &leave);
        assert_eq!(world.reached(GROUP), [GUEST, OTHER], "another behind the port may report yet");
        world.now = world.now + LAST_MEMBER;
        assert_eq!(world.reached(GROUP), [OTHER]);
        world.send(GUEST, GROUP, &join);
        assert_eq!(
            world.reached(GROUP),
            [OTHER, GUEST].into_iter().collect::<PortSet>().collect::<Vec<_>>()
        );
    }
}

#[test]
fn each_record_that_wants_something_joins() {
    let rows = [
        (1, 1, true),
        (2, 0, true),
        (3, 1, true),
        (4, 0, true),
        (5, 1, true),
        (1, 0, false),
        (3, 0, false),
        (6, 1, false),
        (9, 1, false),
    ];
    for (kind, sources, joins) in rows {
        let mut world = World::new();
        world.send(GUEST, GROUP, &record(kind, sources));
        assert_eq!(!world.reached(GROUP).is_empty(), joins, "record {kind} of {sources} sources");
    }
}

#[test]
fn listeners_of_ipv6_are_members_too() {
    let group = [0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 3];
    let first = mld(&[&[131, 0, 0, 0, 0, 0, 0, 0][..], &group].concat());
    let record = mld(&[&[143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0][..], &group].concat());
    let done = mld(&[&[132, 0, 0, 0, 0, 0, 0, 0][..], &group].concat());
    let mut world = World::new();
    assert_eq!(world.reached(GROUP_V6), []);
    world.send(GUEST, GROUP_V6, &first);
    world.send(OTHER, GROUP_V6, &record);
    assert_eq!(world.reached(GROUP_V6), [GUEST, OTHER]);
    world.send(GUEST, GROUP_V6, &done);
    world.now = world.now + LAST_MEMBER;
    assert_eq!(world.reached(GROUP_V6), [OTHER]);
}

/// Without a querier nobody would report again, and memberships would end although they are wanted.
#[test]
fn without_a_querier_a_group_goes_everywhere() {
    let mut world = World::new();
    world.now = world.now + QUERIER;
    assert_eq!(world.reached(GROUP), []);
    world.now = world.now + Duration::from_nanos(1);
    assert_eq!(world.send(WIRE, GROUP, &[0; 60]), Receivers::All);
    // Only a router is a querier, and a query for one group asks for no other.
    world.send(GUEST, GROUP, &igmp(&[0x11, 100, 0, 0, 0, 0, 0, 0]));
    world.send(WIRE, GROUP, &of_group(0x11));
    assert_eq!(world.send(WIRE, GROUP, &[0; 60]), Receivers::All);
    world.ask();
    assert_eq!(world.reached(GROUP), []);
}

#[test]
fn a_membership_ends_without_reports() {
    let mut world = World::new();
    world.send(GUEST, GROUP, &of_group(0x16));
    world.now = world.now + (MEMBERSHIP - Duration::from_secs(1));
    world.ask();
    assert_eq!(world.reached(GROUP), [GUEST]);
    world.now = world.now + Duration::from_secs(1);
    assert_eq!(world.reached(GROUP), []);
}

#[test]
fn groups_of_all_hosts_go_everywhere() {
    let mut world = World::new();
    let groups = [[1, 0, 0x5e, 0, 0, 1], [1, 0, 0x5e, 0, 0, 251], [0x33, 0x33, 0, 0, 0, 1]];
    for group in groups.map(MacAddress) {
        assert_eq!(world.send(WIRE, group, &[0; 60]), Receivers::All);
    }
    assert_eq!(world.send(WIRE, MacAddress([0xff; 6]), &[0; 60]), Receivers::All);
}

#[test]
fn a_message_with_a_wrong_checksum_or_in_fragments_is_none() {
    for at in [2, 7] {
        let mut world = World::new();
        let mut wrong = of_group(0x16);
        wrong[38 + at] ^= 1;
        world.send(GUEST, GROUP, &wrong);
        assert_eq!(world.reached(GROUP), []);
    }
    let mut world = World::new();
    let mut fragment = of_group(0x16);
    fragment[20] |= 0x20;
    world.send(GUEST, GROUP, &fragment);
    assert_eq!(world.reached(GROUP), []);
}

/// A guest that joins more and more groups gets the frames of all groups; its neighbours and the memory are
/// not affected.
#[test]
fn a_port_that_wants_too_many_groups_gets_all() {
    let mut world = World::new();
    world.send(OTHER, GROUP, &of_group(0x16));
    for number in 0..100 {
        let records = (0..200_u8).flat_map(|n| [4, 0, 0, 0, 239, 7, number, n]);
        let message: Vec<u8> = [0x22, 0, 0, 0, 0, 0, 0, 200].into_iter().chain(records).collect();
        world.send(GUEST, GROUP, &igmp(&message));
        assert!(world.snooping.len() <= MOST_GROUPS + 1);
    }
    assert_eq!(world.reached(GROUP), [GUEST, OTHER]);
    assert_eq!(world.reached(MacAddress([1, 0, 0x5e, 9, 9, 9])), [GUEST]);
    world.snooping.forget(GUEST);
    assert_eq!((world.reached(GROUP), world.snooping.len()), (vec![OTHER], 1));
    // Memberships that have ended make room.
    world.send(GUEST, GROUP, &of_group(0x16));
    world.now = world.now + MEMBERSHIP;
    for n in 0..MOST_GROUPS as u16 {
        let [high, low] = n.to_be_bytes();
        world.send(GUEST, GROUP, &igmp(&[0x16, 0, 0, 0, 239, 8, high, low]));
    }
    assert_eq!(world.snooping.len(), MOST_GROUPS);
    world.ask();
    assert_eq!(world.reached(MacAddress([1, 0, 0x5e, 9, 9, 9])), []);
}
