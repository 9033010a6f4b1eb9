//! Scripts for the link under a host: each kind of frame that the link processes, requested and unrequested.

use rxo_testkit::{Random, arp};

/// Step that receives a frame unchanged; other bits put our address in front, or correct the checksums.
const TAKE: u8 = 0;
const TO_US: u8 = 0x40;
const REPAIRED: u8 = 0x80;
const RESOLVE: u8 = 5;
const ADVANCE: u8 = 6;
const FIRE: u8 = 7;

const OURS: [u8; 6] = [2, 0, 0, 0, 0, 2];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// Returns every script.
pub(super) fn scripts() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> =
        frames().into_iter().map(|(name, frame)| (name.to_owned(), around(&frame))).collect();
    files.push(("nobody-answers".to_owned(), nobody_answers()));
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let bytes = (0..600).map(|_| random.next() as u8).collect();
        files.push((format!("random-{seed}"), bytes));
    }
    files
}

/// Returns a script with the frame before any request, after one, and after learned addresses have expired.
fn around(frame: &[u8]) -> Vec<u8> {
    let mut script = vec![0];
    for step in [TAKE, TAKE | TO_US | REPAIRED] {
        // Addresses 10.0.0.9 and fd00::9.
        script.extend([RESOLVE, 9, 0, RESOLVE, 9, 2]);
        script.extend([step, 0, frame.len() as u8]);
        script.extend(frame);
        script.extend([ADVANCE, 117, 48, FIRE, 0, 0, RESOLVE, 9, 0, FIRE, 0, 0]);
    }
    script
}

fn nobody_answers() -> Vec<u8> {
    let mut script = vec![0];
    for host in 3..60 {
        script.extend([RESOLVE, host, host & 3, FIRE, 0, 0]);
    }
    script
}

fn frames() -> [(&'static str, Vec<u8>); 9] {
    let segment = [0x13, 0x88, 0, 80, 0, 0, 0, 77];
    let quoted = v4(6, [10, 0, 0, 2], [1, 2, 3, 4], &segment);
    let quoted6 = v6(6, 64, (2, 9), &segment);
    let icmp = |kind: u8, code: u8, rest: &[u8]| {
        let message = [&[kind, code, 0, 0][..], rest].concat();
        ethernet(0x0800, &v4(1, [10, 0, 0, 9], [10, 0, 0, 2], &message))
    };
    let icmp6 = |kind: u8, rest: &[u8]| {
        let message = [&[kind, 0, 0, 0][..], rest].concat();
        ethernet(0x86dd, &v6(58, 255, (9, 2), &message))
    };
    let about = |host: u8, flags: u8, option: u8| {
        [&[flags, 0, 0, 0][..], &address(host), &[option, 1], &PEER].concat()
    };
    let arp_packet = |operation: u8| {
        let packet = [&[0, 1, 8, 0, 6, 4, 0, operation][..], &PEER, &[10, 0, 0, 9]].concat();
        ethernet(0x0806, &[&packet[..], &OURS, &[10, 0, 0, 2]].concat())
    };
    [
        ("arp-of-others", arp().bytes()),
        ("arp-request", arp_packet(1)),
        ("arp-reply", arp_packet(2)),
        ("solicitation", icmp6(135, &about(2, 0, 1))),
        ("advertisement", icmp6(136, &about(9, 0x60, 2))),
        ("echo", icmp(8, 0, &[7; 12])),
        ("echo-v6", icmp6(128, &[7; 12])),
        ("too-big", icmp(3, 4, &[&[0, 0, 5, 0x78][..], &quoted].concat())),
        ("too-big-v6", icmp6(2, &[&[0, 0, 5, 0x78][..], &quoted6].concat())),
    ]
}

fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&OURS[..], &PEER, &kind.to_be_bytes(), packet].concat()
}

/// Builds an IPv4 packet with checksum 0, which the script corrects.
fn v4(protocol: u8, from: [u8; 4], to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let head = [&[0x45, 0][..], &length, &[0, 0, 0x40, 0, 64, protocol, 0, 0]].concat();
    [&head[..], &from, &to, payload].concat()
}

/// Builds a packet between two hosts of `fd00::/64`.
fn v6(next: u8, hops: u8, hosts: (u8, u8), payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    let head = [&[0x60, 0, 0, 0][..], &length, &[next, hops]].concat();
    [&head[..], &address(hosts.0), &address(hosts.1), payload].concat()
}

fn address(host: u8) -> [u8; 16] {
    let mut address = [0; 16];
    (address[0], address[15]) = (0xfd, host);
    address
}
