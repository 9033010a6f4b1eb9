//! ACK templates, and scripts for the splitter.

use rxo_testkit::{Packet, Random, seg};

/// Flag for raw IP, constant IDs, and a partial checksum.
const RAW: u8 = 1;
const KEEP: u8 = 2;
const SEED: u8 = 4;

pub(super) fn templates() -> Vec<(String, Vec<u8>)> {
    let ack = || seg().pure_ack().id(65_530);
    let named: [(&str, u8, Packet); 15] = [
        ("v4", 0, ack()),
        ("v4-timestamp", KEEP, ack().ts(1, 2)),
        ("v4-padded", 0, ack().padded_with(7)),
        ("v4-seed", SEED, ack().ts(3, 4).partial()),
        ("v4-raw", RAW, ack().raw_ip().ts(5, 6)),
        ("v4-vlan", 0, ack().vlan(100)),
        ("v4-two-tags", KEEP, ack().tag(0x88a8, 7).vlan(8).ts(7, 8)),
        ("v4-options", 0, ack().ip_options(&[1, 1, 1, 1])),
        ("v4-ece", 0, ack().ece()),
        ("v4-wrong", 0, ack().bad_checksum().bad_ip_checksum()),
        ("v4-sack", 0, ack().sack(&[(1, 2)])),
        ("v6", 0, ack().v6()),
        ("v6-raw-seed", RAW | SEED, ack().v6().raw_ip().partial()),
        ("v6-timestamp-two-tags", 0, ack().v6().vlan(1).vlan(2).ts(9, 10)),
        ("data", 0, seg().ts(1, 2)),
    ];
    named.into_iter().map(|(name, how, packet)| (name.to_owned(), template(how, &packet))).collect()
}

fn template(how: u8, packet: &Packet) -> Vec<u8> {
    let mut random = Random::new(u64::from(how));
    let mut bytes = vec![how, 3];
    bytes.extend((0..3 * 14).map(|index| if index < 14 { 0xff } else { random.next() as u8 }));
    bytes.extend(packet.bytes());
    bytes
}

/// Returns scripts of deliveries and ACKs in turn, with every other event between them, and random scripts.
pub(super) fn scripts() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = (0..16).map(|kind| (format!("event-{kind}"), between(kind))).collect();
    for seed in 0..6 {
        let mut random = Random::new(seed);
        files.push((format!("random-{seed}"), (0..601).map(|_| random.next() as u8).collect()));
    }
    files
}

const DELIVER: u8 = 0;
const ANSWER: u8 = 7;

fn between(kind: u8) -> Vec<u8> {
    let mut bytes = vec![2];
    for round in 0..12 {
        let flow = round % 3;
        bytes.extend([DELIVER, flow, 16 + round, 0, 0, 1]);
        bytes.extend([kind, flow, round * 5, round * 20, round * 17, round * 4]);
        bytes.extend([DELIVER, flow, 7, 0x40, 0, 0]);
        bytes.extend([ANSWER, flow, 0, 0, 100 - round, round * 4]);
    }
    bytes
}
