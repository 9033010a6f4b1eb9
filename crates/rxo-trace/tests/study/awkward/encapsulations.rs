//! Captures inside a tunnel, or of a link that the engine does not read.

use rxo_capture::{LinkType, Record};

use super::directions::interface;
use super::transfer::clean;
use super::{assert_cannot_say, assert_same_answer, cut, studied};
use crate::traffic::record;

/// Makes the captured packet from the packet's own Ethernet frame.
type Wrap = fn(&[u8]) -> Vec<u8>;

fn ethernet_frame(kind: u16, rest: &[&[u8]]) -> Vec<u8> {
    [&[2; 12][..], &kind.to_be_bytes(), &rest.concat()].concat()
}

/// Returns an IPv4 packet for the protocol, without a checksum, with this content.
fn ipv4(protocol: u8, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let length = (content.len() as u16 + 20).to_be_bytes();
    let header = [0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, protocol, 0, 0];
    let mut packet = [&header[..], &[192, 0, 2, 1, 192, 0, 2, 2], &content].concat();
    let words = packet[..20].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn udp(port: u16, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let (port, length) = (port.to_be_bytes(), (content.len() as u16 + 8).to_be_bytes());
    let header = [0xc0, 0, port[0], port[1], length[0], length[1], 0, 0];
    ipv4(17, &[&header, &content])
}

const LABEL: [u8; 4] = [0, 0, 0x10, 64];
const LAST_LABEL: [u8; 4] = [0, 0, 0x21, 64];

const WRAPS: [(&str, u16, Wrap); 17] = [
    ("MPLS", 1, |frame| ethernet_frame(0x8847, &[&LAST_LABEL, &frame[14..]])),
    ("MPLS", 1, |frame| ethernet_frame(0x8847, &[&LABEL, &LAST_LABEL, &frame[14..]])),
    ("MPLS", 1, |frame| ethernet_frame(0x8847, &[&LAST_LABEL, &[0; 4], frame])),
    ("PPPoE", 1, |frame| {
        let length = (frame.len() as u16 - 12).to_be_bytes();
        ethernet_frame(0x8864, &[&[0x11, 0, 0, 7], &length, &[0, 0x21], &frame[14..]])
    }),
    ("GRE", 1, |frame| ethernet_frame(0x800, &[&ipv4(47, &[&[0, 0, 8, 0], &frame[14..]])])),
    ("GRE", 1, |frame| {
        ethernet_frame(0x800, &[&ipv4(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 9], &frame[14..]])])
    }),
    ("GRE", 1, |frame| ethernet_frame(0x800, &[&ipv4(47, &[&[0, 0, 0x65, 0x58], frame])])),
    ("GRE", 1, |frame| {
        ethernet_frame(0x800, &[&ipv4(47, &[&[0x10, 0, 0x88, 0xbe], &[0; 12], frame])])
    }),
    ("IP in IP", 1, |frame| ethernet_frame(0x800, &[&ipv4(4, &[&frame[14..]])])),
    ("VXLAN", 1, |frame| ethernet_frame(0x800, &[&udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], frame])])),
    ("Geneve", 1, |frame| {
        ethernet_frame(0x800, &[&udp(6081, &[&[0, 0, 0x65, 0x58, 0, 0, 7, 0], frame])])
    }),
    ("more than two VLAN tags", 1, |frame| {
        let tags = [[0, 5, 0x81, 0], [0, 6, 0x81, 0], [0, 7, 8, 0]];
        ethernet_frame(0x88a8, &[&tags.concat(), &frame[14..]])
    }),
    ("PPP", 9, |frame| [&[0xff, 3, 0, 0x21], &frame[14..]].concat()),
    ("PPP", 50, |frame| [&[0xff, 3, 0, 0x21], &frame[14..]].concat()),
    ("802.11", 105, |frame| {
        [&[8, 1][..], &[0; 22], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &frame[14..]].concat()
    }),
    ("802.11", 127, |frame| {
        let radiotap = [0, 0, 8, 0, 0, 0, 0, 0];
        let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        [&radiotap[..], &[0x88, 1], &[0; 24], &snap, &frame[14..]].concat()
    }),
    ("GRE", 101, |frame| ipv4(47, &[&[0, 0, 8, 0], &frame[14..]])),
];

fn wrapped(wrap: Wrap, snap_bytes: usize) -> Vec<Record> {
    let wrapped =
        |one: Record| cut(record(wrap(one.bytes.as_ref()), one.at.as_nanos()), snap_bytes);
    clean().into_iter().map(wrapped).collect()
}

#[test]
fn the_packets_inside_are_coalesced_and_the_encapsulation_is_named() {
    for (name, link, wrap) in WRAPS {
        let report = studied(&interface(LinkType(link)), &wrapped(wrap, 65_535));
        assert_same_answer(name, &report);
        let found = &report.traffic.encapsulations;
        assert!(
            found.len() == 1 && found[0].name == name && found[0].packets == 20_000,
            "{found:?}"
        );
        let is_own = matches!(name, "VXLAN" | "Geneve");
        let is_named = report.notes.iter().any(|note| note.contains(&format!("20,000 in {name}")));
        assert!(is_named != is_own, "{name}: {:?}", report.notes);
    }
}

#[test]
fn short_snap_lengths_change_nothing_in_an_encapsulation() {
    for (name, link, wrap) in WRAPS {
        let report = studied(&interface(LinkType(link)), &wrapped(wrap, 128));
        assert_same_answer(&format!("{name}, cut"), &report);
    }
}

#[test]
fn an_encrypted_network_cannot_say() {
    let records = wrapped(|frame| [&[8, 0x41][..], &frame[14..]].concat(), 65_535);
    assert_cannot_say("802.11", &studied(&interface(LinkType(105)), &records), "Capture where it");
}
