//! Tests of the switch, one rule at a time.

use std::time::Duration;

use rxo::switch::{
    DropReason, Forward, Guard, MacAddress, Port, PortSettings, Switch, SwitchError, SwitchOptions,
    Vlans,
};
use rxo::{Frame, Instant};

use crate::{Tag, access, frame, mac, port, trunk};

const BROADCAST: MacAddress = MacAddress([0xff; 6]);
const NOW: Instant = Instant::ZERO;

fn switch(ports: &[PortSettings]) -> Switch {
    Switch::new(ports.to_vec(), SwitchOptions::default()).unwrap()
}

/// Sends an untagged frame, and returns the ports that it leaves through.
fn send(switch: &mut Switch, from: usize, to: MacAddress, source: MacAddress) -> Vec<usize> {
    ports(switch.forward(port(from), &frame(to, source, Tag::None), NOW))
}

fn ports(forward: Forward) -> Vec<usize> {
    match forward {
        Forward::To(ports) => ports.map(Port::index).collect(),
        Forward::Drop(reason) => panic!("dropped: {}", reason.name()),
    }
}

fn fixed(number: u8) -> PortSettings {
    PortSettings { vlans: Vlans::Only(0), fixed: Some(mac(number)) }
}

#[test]
fn an_address_that_was_seen_gets_its_frames_alone() {
    let mut switch = switch(&[trunk(), access(0), access(0)]);
    assert_eq!(send(&mut switch, 1, mac(9), mac(1)), [0, 2], "nobody knows 9 yet");
    assert_eq!(send(&mut switch, 0, mac(1), mac(9)), [1]);
    assert_eq!(send(&mut switch, 1, mac(9), mac(1)), [0]);
    let counters = switch.counters();
    assert_eq!((counters.flooded, counters.forwarded, counters.learned), (1, 2, 2));
}

#[test]
fn groups_go_to_all_other_ports() {
    let mut switch = switch(&[trunk(), access(0), fixed(2)]);
    assert_eq!(send(&mut switch, 0, BROADCAST, mac(9)), [1, 2]);
    assert_eq!(send(&mut switch, 1, MacAddress([1, 0, 0x5e, 0, 0, 1]), mac(1)), [0, 2]);
}

#[test]
fn an_address_moves_with_its_guest() {
    let mut switch = switch(&[trunk(), access(0), access(0)]);
    send(&mut switch, 1, BROADCAST, mac(1));
    send(&mut switch, 2, BROADCAST, mac(1));
    assert_eq!(send(&mut switch, 0, mac(1), mac(9)), [2]);
    assert_eq!(switch.counters().moved, 1);
}

#[test]
fn an_address_is_forgotten_after_its_time() {
    let mut switch = switch(&[trunk(), access(0), access(0)]);
    let to_one = frame(mac(1), mac(9), Tag::None);
    send(&mut switch, 1, BROADCAST, mac(1));
    let age = Duration::from_secs(300);
    assert_eq!(ports(switch.forward(port(0), &to_one, NOW + age)), [1]);
    let later = NOW + age + Duration::from_nanos(1);
    assert_eq!(ports(switch.forward(port(0), &to_one, later)), [1, 2]);
}

#[test]
fn a_device_that_left_is_forgotten_at_once() {
    let mut switch = switch(&[trunk(), access(0), access(0)]);
    send(&mut switch, 1, BROADCAST, mac(1));
    switch.forget(port(1));
    assert_eq!(switch.address_count(), 0);
    assert_eq!(send(&mut switch, 0, mac(1), mac(9)), [1, 2]);
}

/// Without this limit one guest could make the switch flood the frames of all others.
#[test]
fn a_port_with_too_many_addresses_takes_no_room_from_others() {
    let options = SwitchOptions { most_addresses: 2, ageing: Duration::from_secs(5) };
    let mut switch = Switch::new(vec![trunk(), access(0), access(0)], options).unwrap();
    (10..20).for_each(|number| _ = send(&mut switch, 1, BROADCAST, mac(number)));
    assert_eq!((switch.address_count(), switch.counters().not_learned), (2, 8));
    send(&mut switch, 2, BROADCAST, mac(1));
    send(&mut switch, 0, BROADCAST, mac(2));
    assert_eq!(send(&mut switch, 0, mac(1), mac(2)), [2]);
    assert_eq!(send(&mut switch, 2, mac(2), mac(1)), [0]);
    // An address that moves to a full port may be learned or not, but it no longer belongs to its old port.
    assert_eq!(send(&mut switch, 1, BROADCAST, mac(1)), [0, 2]);
    assert_eq!(send(&mut switch, 0, mac(1), mac(2)), [1, 2]);
    // An address that moves away from a full port makes room there for another.
    send(&mut switch, 2, BROADCAST, mac(10));
    send(&mut switch, 1, BROADCAST, mac(30));
    assert_eq!(send(&mut switch, 0, mac(30), mac(2)), [1]);
}

#[test]
fn a_full_table_learns_nothing_until_an_address_has_aged() {
    let options = SwitchOptions { most_addresses: 2, ageing: Duration::from_secs(5) };
    let mut switch = Switch::new(vec![trunk(), access(0)], options).unwrap();
    let mut hello = |number, seconds: u64| {
        let now = Instant::from_micros(seconds * 1_000_000);
        switch.forward(port(1), &frame(BROADCAST, mac(number), Tag::None), now);
        let counters = *switch.counters();
        (counters.learned, counters.not_learned, switch.address_count())
    };
    assert_eq!(hello(1, 10), (1, 0, 1));
    assert_eq!(hello(2, 12), (2, 0, 2));
    assert_eq!(hello(3, 14), (2, 1, 2));
    assert_eq!(hello(3, 16), (3, 1, 2), "1 has aged");
    assert_eq!(hello(2, 17), (3, 1, 2), "2 is still known");
}

#[test]
fn vlans_do_not_meet() {
    let mut switch = switch(&[trunk(), access(7), access(7), access(0)]);
    let tagged = |to, vlan| frame(to, mac(9), Tag::InBytes(vlan));
    assert_eq!(ports(switch.forward(port(0), &tagged(BROADCAST, 7), NOW)), [1, 2]);
    assert_eq!(ports(switch.forward(port(0), &tagged(BROADCAST, 8), NOW)), [0; 0]);
    let by_device = frame(BROADCAST, mac(9), Tag::TakenByDevice(7));
    assert_eq!(ports(switch.forward(port(0), &by_device, NOW)), [1, 2]);
    assert_eq!(send(&mut switch, 1, BROADCAST, mac(1)), [0, 2]);
    assert_eq!(send(&mut switch, 3, BROADCAST, mac(1)), [0], "the same address, another VLAN");
    assert_eq!(ports(switch.forward(port(0), &tagged(mac(1), 7), NOW)), [1]);
}

#[test]
fn a_tag_with_a_priority_only_is_no_vlan() {
    let mut switch = switch(&[trunk(), access(0)]);
    let priority = frame(BROADCAST, mac(1), Tag::InBytes(0));
    assert_eq!(ports(switch.forward(port(1), &priority, NOW)), [0]);
}

#[test]
fn a_fixed_port_gets_what_is_for_it_before_it_sends() {
    let mut switch = switch(&[trunk(), fixed(1), fixed(2)]);
    assert_eq!(send(&mut switch, 0, mac(2), mac(9)), [2]);
    assert_eq!(send(&mut switch, 0, mac(5), mac(9)), [0; 0], "unknown, and no port learns");
    assert_eq!(switch.address_count(), 1);
}

#[test]
fn every_reason_to_drop_has_its_frame() {
    let mut switch = switch(&[trunk(), access(7), fixed(2), access(0), fixed(4), fixed(5)]);
    for guarded in [4, 5] {
        let ips = vec![[10, 0, 0, guarded].into()];
        let guard = Guard { ips, is_isolated: true, ..Guard::default() };
        switch.guard(port(guarded.into()), guard);
    }
    let short = |bytes: usize| Frame::new(vec![0x52; bytes], NOW);
    let mut tag_only = frame(mac(3), mac(1), Tag::InBytes(7));
    tag_only.bytes.truncate(17);
    send(&mut switch, 3, BROADCAST, mac(3));
    let rows = [
        (0, short(13), DropReason::Truncated),
        (0, short(0), DropReason::Truncated),
        (0, tag_only, DropReason::Truncated),
        (0, frame(mac(3), BROADCAST, Tag::None), DropReason::BadSource),
        (0, frame(mac(3), MacAddress::ZERO, Tag::None), DropReason::BadSource),
        (2, frame(mac(3), mac(4), Tag::None), DropReason::ForeignSource),
        (0, frame(mac(3), mac(2), Tag::None), DropReason::ForeignSource),
        (1, frame(mac(3), mac(1), Tag::InBytes(7)), DropReason::ForeignVlan),
        (0, frame(MacAddress([1, 0x80, 0xc2, 0, 0, 1]), mac(9), Tag::None), DropReason::LinkLocal),
        (3, frame(mac(3), mac(6), Tag::None), DropReason::SamePort),
        (4, frame(mac(3), mac(4), Tag::None), DropReason::Malformed),
        (4, ip(mac(3), 5, 6, &[]), DropReason::ForeignIp),
        (4, arp(5), DropReason::ForeignNeighbour),
        (4, ip(mac(3), 4, 1, &[9]), DropReason::ForeignRouter),
        (4, ip(mac(3), 4, 17, &[0, 67, 0, 68]), DropReason::ForeignDhcp),
        (4, ip(mac(5), 4, 6, &[]), DropReason::Isolated),
    ];
    for (from, frame, reason) in rows {
        let before = switch.counters().dropped(reason);
        assert_eq!(switch.forward(port(from), &frame, NOW), Forward::Drop(reason), "{frame:?}");
        assert_eq!(switch.counters().dropped(reason), before + 1);
    }
    let dropped = |reason: &DropReason| switch.counters().dropped(*reason);
    assert!(DropReason::ALL.iter().all(|reason| dropped(reason) > 0));
}

/// Creates a frame of device 4 with an IPv4 packet from 10.0.0.`host`.
fn ip(to: MacAddress, host: u8, protocol: u8, upper: &[u8]) -> Frame<Vec<u8>> {
    let mut frame = frame(to, mac(4), Tag::None);
    frame.bytes.truncate(14);
    frame.bytes.extend([0x45, 0, 0, 20 + upper.len() as u8, 0, 0, 0, 0, 64, protocol, 0, 0]);
    frame.bytes.extend([10, 0, 0, host, 239, 1, 2, 3]);
    frame.bytes.extend(upper);
    frame
}

/// Creates an ARP packet in which device 4 claims 10.0.0.`host`.
fn arp(host: u8) -> Frame<Vec<u8>> {
    let mut bytes = [BROADCAST.0, mac(4).0].concat();
    bytes.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    bytes.extend([&mac(4).0[..], &[10, 0, 0, host], &[0; 10]].concat());
    Frame::new(bytes, NOW)
}

#[test]
fn isolated_ports_reach_all_but_each_other() {
    let mut switch = switch(&[trunk(), fixed(1), fixed(2), fixed(3), access(0)]);
    for isolated in [1, 2] {
        switch.guard(port(isolated), Guard { is_isolated: true, ..Guard::default() });
    }
    let mut send = |from, to: MacAddress| {
        let mut frame = frame(to, mac(from), Tag::None);
        frame.bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
        switch.forward(port(from.into()), &frame, NOW)
    };
    assert_eq!(ports(send(1, BROADCAST)), [0, 3, 4]);
    assert_eq!(ports(send(1, mac(9))), [0, 4], "an unknown address");
    assert_eq!(send(1, mac(2)), Forward::Drop(DropReason::Isolated));
    assert_eq!(ports(send(1, mac(3))), [3]);
    assert_eq!(ports(send(3, mac(1))), [1]);
    assert_eq!(ports(send(3, BROADCAST)), [0, 1, 2, 4]);
}

/// A router at port 0 sends queries; 1 and 2 are guests, and 3 is a guest that routes.
#[test]
fn a_group_goes_to_its_members_and_to_routers() {
    const GROUP: MacAddress = MacAddress([1, 0, 0x5e, 1, 2, 3]);
    let mut switch = switch(&[trunk(), fixed(4), fixed(2), fixed(3)]);
    for (guarded, routes) in [(1, false), (2, false), (3, true)] {
        switch.guard(port(guarded), Guard { routes, ..Guard::default() });
    }
    let data = frame(GROUP, mac(9), Tag::None);
    let mut query = ip(GROUP, 9, 2, &[0x11, 0, 0xee, 0xff, 0, 0, 0, 0]);
    query.bytes[6..12].copy_from_slice(&mac(9).0);
    let query_of_a_guest = ip(GROUP, 4, 2, &[0x11, 0, 0xee, 0xff, 0, 0, 0, 0]);
    let report = ip(GROUP, 4, 2, &[0x16, 0, 0xf8, 0xfa, 239, 1, 2, 3]);
    assert_eq!(
        switch.forward(port(1), &query_of_a_guest, NOW),
        Forward::Drop(DropReason::ForeignRouter)
    );
    assert_eq!(ports(switch.forward(port(0), &data, NOW)), [1, 2, 3], "nobody asks");
    assert_eq!(ports(switch.forward(port(0), &query, NOW)), [1, 2, 3]);
    assert_eq!(ports(switch.forward(port(0), &data, NOW)), [3]);
    assert_eq!(ports(switch.forward(port(1), &report, NOW)), [0, 3], "only routers hear it");
    assert_eq!(ports(switch.forward(port(0), &data, NOW)), [1, 3]);
    switch.forget(port(1));
    assert_eq!(ports(switch.forward(port(0), &data, NOW)), [3]);
}

/// A priority tag in front of another tag would lead out of an access port's VLAN.
#[test]
fn a_tag_behind_a_priority_tag_does_not_leave_an_access_port() {
    let mut switch = switch(&[trunk(), access(0), access(7)]);
    let foreign = Forward::Drop(DropReason::ForeignVlan);
    for (outer, at) in [(Tag::InBytes(0), 16), (Tag::TakenByDevice(0), 12)] {
        let mut hides = frame(BROADCAST, mac(1), outer);
        hides.bytes.splice(at..at, [0x81, 0x00, 0, 7]);
        for from in [1, 2] {
            assert_eq!(switch.forward(port(from), &hides, NOW), foreign, "{outer:?}");
        }
        assert_ne!(switch.forward(port(0), &hides, NOW), foreign, "a trunk carries it");
    }
}

#[test]
fn ports_that_cannot_be_are_named() {
    let make = |ports: &[PortSettings]| Switch::new(ports.to_vec(), SwitchOptions::default()).err();
    assert_eq!(make(&[trunk(); 65]), Some(SwitchError::TooManyPorts(65)));
    assert_eq!(make(&[access(4_095)]), Some(SwitchError::Vlan(4_095)));
    assert_eq!(make(&[fixed(2), fixed(2)]), Some(SwitchError::SameAddress(mac(2))));
    let group = PortSettings { fixed: Some(BROADCAST), ..trunk() };
    assert_eq!(make(&[group]), Some(SwitchError::Address(BROADCAST)));
    let other_vlan = PortSettings { vlans: Vlans::Only(7), ..fixed(2) };
    assert_eq!(make(&[fixed(2), other_vlan]), None);
    let text = SwitchError::SameAddress(mac(2)).to_string();
    assert_eq!(text, "two ports have the address 52:54:00:00:00:02; give each its own");
}

#[test]
fn addresses_are_read_as_they_are_written() {
    assert_eq!("52:54:00:00:00:0a".parse(), Ok(mac(10)));
    assert_eq!(mac(10).to_string(), "52:54:00:00:00:0a");
    for text in
        ["", "52:54:00:00:00", "52:54:00:00:00:0a:1", "52:54:00:00:00:+a", "52-54-00-00-00-0a"]
    {
        assert!(text.parse::<MacAddress>().is_err(), "{text}");
    }
}
