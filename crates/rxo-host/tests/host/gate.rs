//! The gate: every kind of received packet, and every reason to refuse it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use rxo_device::{MemoryLink, MemoryOptions};
use rxo_frame::{Frame, Instant, VlanTag};
use rxo_host::link::GateCounters;
use rxo_host::{Host, HostConfig, HostCounters};
use rxo_wire::build::{Ipv4Header, Ipv6Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::{SeqNumber, TcpFlags, Transport, parse};

use crate::peer::{Mac, arp, ethernet, icmp, icmpv6};
use crate::world::MemoryHost;

const OURS: Mac = [2, 0, 0, 0, 0, 2];
const PEER: Mac = [2, 0, 0, 0, 0, 9];
const ALL: Mac = [0xff; 6];
const TAG: VlanTag = VlanTag { tpid: NonZeroU16::new(0x8100).unwrap(), tci: 7 };
const NOW: Instant = Instant::from_micros(1_000_000);

/// The packets of one poll, from 10.0.0.9 or fd00::9 to 10.0.0.2 or fd00::2 unless changed.
struct Arrival {
    name: &'static str,
    is_v6: bool,
    /// Builds the bytes after the Ethernet header, with these addresses.
    packets: fn(from: &str, to: &str) -> Vec<Vec<u8>>,
}

/// Segments of an unknown flow to a port without a listener. Each segment that passes the gate, the check of
/// arriving packets, is answered with a reset.
const ARRIVALS: [Arrival; 6] = [
    Arrival { name: "a segment", is_v6: false, packets: |from, to| vec![tcp(from, to, 1, 100)] },
    Arrival {
        name: "a segment of IPv6",
        is_v6: true,
        packets: |from, to| vec![tcp(from, to, 1, 9)],
    },
    Arrival {
        name: "an aggregate",
        is_v6: false,
        packets: |from, to| (0..4).map(|n| tcp(from, to, 1 + n * 500, 500)).collect(),
    },
    Arrival {
        name: "records of pure ACKs",
        is_v6: false,
        packets: |from, to| (0..2).map(|n| ack(from, to, 1_000 + n)).collect(),
    },
    Arrival {
        name: "an echo request",
        is_v6: false,
        packets: |from, to| vec![icmp(from, to, 8, 0, &[1; 20])],
    },
    Arrival {
        name: "an echo request of IPv6",
        is_v6: true,
        packets: |from, to| vec![icmpv6(64, from, to, (128, 0), &[1; 20])],
    },
];

fn tcp(from: &str, to: &str, seq: u32, text: usize) -> Vec<u8> {
    segment(from, to, (seq, 77), TcpFlags::ACK, text)
}

fn ack(from: &str, to: &str, ack: u32) -> Vec<u8> {
    segment(from, to, (1, ack), TcpFlags::ACK, 0)
}

/// Builds a segment to port 81.
fn segment(from: &str, to: &str, (seq, ack): (u32, u32), flags: TcpFlags, text: usize) -> Vec<u8> {
    let header = TcpHeader {
        source_port: 5_000,
        destination_port: 81,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window: 1_000,
        ..TcpHeader::default()
    };
    let payload_bytes = header.bytes() + text;
    let mut packet = vec![0; 40 + payload_bytes];
    if let (Ok(source), Ok(destination)) = (from.parse::<Ipv4Addr>(), to.parse()) {
        let ip =
            Ipv4Header { source, destination, protocol: 6, payload_bytes, ..Ipv4Header::default() };
        packet.truncate(20 + payload_bytes);
        let rest = ip.write(&mut packet).unwrap();
        header.write(rest).unwrap();
        write_tcp_checksum(rest, ip.pseudo_header(), Summer::portable()).unwrap();
    } else {
        let (source, destination): (Ipv6Addr, Ipv6Addr) =
            (from.parse().unwrap(), to.parse().unwrap());
        let ip = Ipv6Header {
            source,
            destination,
            next_header: 6,
            payload_bytes,
            ..Ipv6Header::default()
        };
        let rest = ip.write(&mut packet).unwrap();
        header.write(rest).unwrap();
        write_tcp_checksum(rest, ip.pseudo_header(6, payload_bytes as u32), Summer::portable())
            .unwrap();
    }
    packet
}

/// A host on Ethernet that has resolved its peer.
struct Station {
    host: MemoryHost,
    there: MemoryLink,
    back: MemoryLink,
}

impl Station {
    fn new() -> Self {
        let (there, back) =
            (MemoryLink::new(MemoryOptions::default()), MemoryLink::new(MemoryOptions::default()));
        let addresses = ["10.0.0.2/24", "fd00::2/64"].map(|text| text.parse().unwrap());
        let config = HostConfig { mac: Some(OURS), ..HostConfig::new(addresses.to_vec(), [7, 11]) };
        let host = Host::new(there.source(), back.sink(), config).unwrap();
        let mut station = Self { host, there, back };
        station.introduce();
        station
    }

    fn introduce(&mut self) {
        let hello = arp(ALL, 1, (PEER, "10.0.0.9"), ([0; 6], "10.0.0.2"));
        let target = "fd00::2".parse::<Ipv6Addr>().unwrap().octets();
        let rest = [&[0; 4][..], &target, &[1, 1], &PEER].concat();
        let hello_v6 = icmpv6(255, "fd00::9", "ff02::1:ff00:2", (135, 0), &rest);
        let to = [0x33, 0x33, 0xff, 0, 0, 2];
        self.receives([
            Frame::new(hello, NOW),
            Frame::new(ethernet(to, PEER, 0x86dd, &hello_v6), NOW),
        ]);
        assert_eq!(self.host.counters().link.neighbour_messages, 2);
    }

    /// Passes `frames` to the host. Returns the number of its answers, and its counters.
    fn receives(
        &mut self,
        frames: impl IntoIterator<Item = Frame<Vec<u8>>>,
    ) -> (usize, HostCounters) {
        for frame in frames {
            self.there.push(&frame);
        }
        while !self.host.turn(NOW).unwrap().is_idle() {}
        (self.back.take_all().len(), self.host.counters())
    }
}

/// A modification that makes a packet one for another host.
struct Wrong {
    name: &'static str,
    to_mac: Mac,
    ethertypes: [u16; 2],
    tag: Option<[u8; 4]>,
    device_vlan: bool,
    from: [&'static str; 2],
    to: [&'static str; 2],
    breaks_checksum: bool,
    count: fn(&GateCounters) -> u64,
}

const RIGHT: Wrong = Wrong {
    name: "nothing",
    to_mac: OURS,
    ethertypes: [0x0800, 0x86dd],
    tag: None,
    device_vlan: false,
    from: ["10.0.0.9", "fd00::9"],
    to: ["10.0.0.2", "fd00::2"],
    breaks_checksum: false,
    count: |_| 0,
};

fn wrongs() -> Vec<Wrong> {
    let to_mac = |name, to_mac, count| Wrong { name, to_mac, count, ..RIGHT };
    let to = |name, to| Wrong { name, to, count: |c| c.other_address, ..RIGHT };
    let mut rows = vec![
        to_mac("another station", [2, 0, 0, 0, 0, 3], |c| c.other_station),
        to_mac("a group of IPv4", [1, 0, 0x5e, 0, 0, 1], |c| c.group_station),
        to_mac("no group of IPv4", [1, 0, 0x5e, 0x80, 0, 1], |c| c.other_station),
        to_mac("all stations", ALL, |c| c.group_station),
        to_mac("a group", [0x33, 0x33, 0, 0, 0, 1], |c| c.group_station),
        to("another address", ["10.0.0.3", "fd00::3"]),
        to("a group's address", ["224.0.0.1", "ff02::1"]),
        to("a broadcast", ["10.0.0.255", "ff02::2"]),
        Wrong { name: "a device's tag", device_vlan: true, count: |c| c.other_vlan, ..RIGHT },
        Wrong { name: "a checksum", breaks_checksum: true, count: |c| c.bad_checksum, ..RIGHT },
    ];
    let tags = [[0x81, 0, 0, 7], [0x88, 0xa8, 0, 7], [0x81, 0, 0, 0]];
    let tagged = |tag| Wrong { name: "a tag", tag: Some(tag), count: |c| c.other_vlan, ..RIGHT };
    rows.extend(tags.map(tagged));
    let from_nobody = |from| Wrong { name: "from nobody", from, count: |c| c.no_source, ..RIGHT };
    rows.extend(NOBODY.map(from_nobody));
    rows
}

/// Addresses that no other host can have, for IPv4 and IPv6.
const NOBODY: [[&str; 2]; 6] = [
    ["10.0.0.255", "ff02::1"],
    ["255.255.255.255", "ff0e::1"],
    ["127.0.0.1", "::1"],
    ["224.0.0.1", "ff05::1"],
    ["0.0.0.0", "::"],
    ["10.0.0.2", "fd00::2"],
];

fn frames(arrival: &Arrival, wrong: &Wrong) -> Vec<Frame<Vec<u8>>> {
    let version = usize::from(arrival.is_v6);
    let packets = (arrival.packets)(wrong.from[version], wrong.to[version]);
    let frame = |mut packet: Vec<u8>| {
        if wrong.breaks_checksum {
            let at = packet.len() - 1;
            packet[at] ^= 1;
        }
        let mut bytes = ethernet(wrong.to_mac, PEER, wrong.ethertypes[version], &packet);
        if let Some(tag) = wrong.tag {
            bytes.splice(12..12, tag);
        }
        let vlan = wrong.device_vlan.then_some(TAG);
        Frame { vlan, ..Frame::new(bytes, NOW) }
    };
    packets.into_iter().map(frame).collect()
}

#[test]
fn what_is_for_this_host_comes_through() {
    for arrival in &ARRIVALS {
        let mut station = Station::new();
        let (answers, counters) = station.receives(frames(arrival, &RIGHT));
        assert_eq!((answers, counters.link.refused.total()), (1, 0), "{}", arrival.name);
    }
    // Packets that came together were answered together.
    let together = |index: usize| Station::new().receives(frames(&ARRIVALS[index], &RIGHT)).1;
    assert_eq!(together(2).engine.aggregates, 1);
    assert_eq!((together(3).tcp.strangers, together(3).engine.ack_aggregates), (1, 1));
}

/// RFC 9293, section 3.1 (MUST-3): packets with a wrong checksum, or for another host, are neither processed
/// nor answered.
#[test]
fn what_is_for_others_is_refused_and_counted() {
    for arrival in &ARRIVALS {
        for wrong in wrongs() {
            let what = format!("{}: {} ({:?})", arrival.name, wrong.name, wrong.from);
            let mut station = Station::new();
            let (answers, counters) = station.receives(frames(arrival, &wrong));
            let refused = counters.link.refused;
            assert_eq!(
                (answers, counters.tcp.strangers, counters.connections),
                (0, 0, 0),
                "{what}"
            );
            assert!((wrong.count)(&refused) > 0, "{what}: {refused:?}");
            assert_eq!((wrong.count)(&refused), refused.total(), "{what}: {refused:?}");
        }
    }
}

/// The gate's cache is empty at first: not even a flow whose key is all zeros matches it.
#[test]
fn the_first_of_all_is_looked_at_too() {
    let mut packet = tcp("::", "::", 1, 9);
    let ports: u32 =
        packet[40..44].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    packet[40..44].fill(0);
    let sum = u32::from(packet[56]) << 8 | u32::from(packet[57]);
    let sum = (sum + ports) % 0xffff;
    packet[56..58].copy_from_slice(&(sum as u16).to_be_bytes());
    let (answers, counters) =
        Station::new().receives([Frame::new(ethernet(OURS, PEER, 0x86dd, &packet), NOW)]);
    assert_eq!((answers, counters.tcp.strangers, counters.link.refused.other_address), (0, 0, 1));
}

/// Neighbour solicitations go to a group and may come from hosts without an address; all other checks of the
/// gate apply to them too.
#[test]
fn neighbours_pass_the_same_gate() {
    let target = "fd00::2".parse::<Ipv6Addr>().unwrap().octets();
    let asks = |from: &str| {
        icmpv6(255, from, "ff02::1:ff00:2", (135, 0), &[&[0; 4][..], &target].concat())
    };
    let group = [0x33, 0x33, 0xff, 0, 0, 2];
    let rows = [
        (ethernet(group, PEER, 0x86dd, &asks("fd00::9")), None, 1),
        (ethernet(group, PEER, 0x86dd, &asks("::")), None, 1),
        (ethernet(OURS, PEER, 0x86dd, &asks("fd00::9")), None, 1),
        (ethernet(group, PEER, 0x86dd, &asks("ff02::1")), None, 0),
        (ethernet(PEER, PEER, 0x86dd, &asks("fd00::9")), None, 0),
        (ethernet(group, PEER, 0x86dd, &asks("fd00::9")), Some(TAG), 0),
        (arp(ALL, 1, (PEER, "10.0.0.9"), ([0; 6], "10.0.0.2")), None, 1),
        (arp(ALL, 1, (PEER, "0.0.0.0"), ([0; 6], "10.0.0.2")), None, 1),
        (arp(PEER, 1, (PEER, "10.0.0.9"), ([0; 6], "10.0.0.2")), None, 0),
        (arp(ALL, 1, (PEER, "10.0.0.9"), ([0; 6], "10.0.0.2")), Some(TAG), 0),
        (arp(ALL, 1, (PEER, "127.0.0.1"), ([0; 6], "10.0.0.2")), None, 0),
        (arp(ALL, 1, (PEER, "10.0.0.255"), ([0; 6], "10.0.0.2")), None, 0),
    ];
    for (row, (bytes, vlan, answers)) in rows.into_iter().enumerate() {
        let frame = Frame { vlan, ..Frame::new(bytes, NOW) };
        assert_eq!(Station::new().receives([frame]).0, answers, "row {row}");
    }
}

/// The reset that answers several segments carries the number that the peer expects: that of the last segment
/// that arrived together with them (RFC 9293, section 3.10.7.1).
#[test]
fn what_came_together_is_answered_by_the_last_number() {
    for (index, expected) in [(2, 77), (3, 1_001)] {
        let mut station = Station::new();
        for frame in frames(&ARRIVALS[index], &RIGHT) {
            station.there.push(&frame);
        }
        while !station.host.turn(NOW).unwrap().is_idle() {}
        let answer = station.back.take().unwrap();
        let Transport::Tcp(tcp) = parse(&answer.bytes).unwrap().transport else { panic!("no TCP") };
        assert_eq!((tcp.flags, tcp.seq), (TcpFlags::RST, SeqNumber(expected)));
    }
}
