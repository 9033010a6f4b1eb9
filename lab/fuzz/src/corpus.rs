//! The kept corpus, from which fuzzing starts.
//!
//! The corpus is generated rather than collected, so that it can be regenerated when the meaning of the bytes
//! changes. Each file reaches code that random bytes would reach late.

mod acks;
mod captures;
mod coalesced;
mod fast_path;
mod http;
mod link;
mod pure_acks;
mod rings;
mod vhost;
mod vhost_live;
mod vnet;

use rxo_testkit::script::Setup;
use rxo_testkit::{Packet, Random, arp, geneve, seg, udp, vxlan};

/// A file of the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The target that reads the file.
    pub target: &'static str,
    /// The file's name.
    pub name: String,
    /// Contents of the file.
    pub bytes: Vec<u8>,
}

/// Returns all files of all targets.
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let mut add = |target, files: Vec<(String, Vec<u8>)>| {
        seeds.extend(files.into_iter().map(|(name, bytes)| Seed { target, name, bytes }));
    };
    add("parse", packets());
    add("checksum", sums());
    for target in ["engine", "oracle", "resegment"] {
        add(target, scripts());
    }
    add("acks", pure_acks::scripts());
    add("part", parts());
    add("pcap", captures::pcap());
    add("pcapng", captures::pcapng());
    add("packed", captures::packed());
    add("expand", coalesced::files());
    add("template", acks::templates());
    add("split", acks::scripts());
    add("vnet", vnet::reads());
    add("tcp-segments", tcp_scripts(10));
    add("tcp-pair", tcp_scripts(10));
    add("cast", tcp_scripts(12));
    add("host-link", link::scripts());
    add("host-fast-path", fast_path::scripts());
    add("http", http::conversations());
    add("vhost", vhost::conversations());
    add("vhost-live", vhost_live::scripts());
    add("switch", talks());
    for target in ["ring-device", "ring-driver"] {
        add(target, rings::scripts());
    }
    seeds
}

/// Random bytes, of which the target makes frames.
fn talks() -> Vec<(String, Vec<u8>)> {
    let talk = |n: u64| {
        let mut random = Random::new(n);
        (format!("talk-{n}"), (0..1_000 * n).map(|_| random.next() as u8).collect())
    };
    (1..=10).map(talk).collect()
}

/// Changes to a part: none, one in each kilobyte, many.
fn parts() -> Vec<(String, Vec<u8>)> {
    let change = |at: u16, value: u8| [at.to_le_bytes().to_vec(), vec![value]].concat();
    let mut random = Random::new(9);
    let mut many = |count| (0..count).flat_map(|_| change(random.next() as u16, 1)).collect();
    let early = (0..8).map(|at| (format!("early-{at}"), change(at * 150, 0x11)));
    let mut parts: Vec<(String, Vec<u8>)> = early.collect();
    parts.extend([
        ("nothing".to_owned(), Vec::new()),
        ("one".to_owned(), change(700, 0x80)),
        ("a-few".to_owned(), (0..4).flat_map(|at| change(at * 1_000, 1)).collect()),
        ("many".to_owned(), many(40)),
    ]);
    parts
}

fn packets() -> Vec<(String, Vec<u8>)> {
    let named: [(&str, Packet); 22] = [
        ("v4", seg()),
        ("v4-timestamp", seg().ts(1, 2)),
        ("v4-psh-padded", seg().psh().len(1).padded()),
        ("v4-options", seg().ip_options(&[7, 7, 4, 0, 0, 0, 0])),
        ("v4-fragment", seg().fragment(0, true)),
        ("v4-last-fragment", seg().fragment(185, false)),
        ("v4-sack", seg().pure_ack().sack(&[(1, 2), (3, 4)])),
        ("v4-syn", seg().syn().no_ack().len(0).options(&[2, 4, 5, 180, 4, 2]).window_scale(7)),
        ("v4-raw", seg().raw_ip().ts(3, 4)),
        ("v4-vlan", seg().vlan(100)),
        ("v4-two-tags", seg().tag(0x88a8, 7).vlan(8)),
        ("v4-three-tags", seg().vlan(1).vlan(2).vlan(3)),
        ("v6", seg().v6()),
        ("v6-raw", seg().v6().raw_ip().ts(5, 6)),
        ("v6-destination-options", seg().v6().extension(60, &[1, 4, 0, 0, 0, 0])),
        ("v6-chain", seg().v6().extension(0, &[]).extension(43, &[]).extension(60, &[])),
        ("v6-fragment", seg().v6().fragment(0, true)),
        ("v6-vlan", seg().v6().vlan(4095).ts(7, 8)),
        ("udp", udp()),
        ("vxlan", seg().within(vxlan().checksum())),
        ("geneve", seg().v6().within(geneve().v6().options(&[1, 2, 3, 4]))),
        ("arp", arp().padded()),
    ];
    named.into_iter().map(|(name, packet)| (name.to_owned(), packet.bytes())).collect()
}

fn sums() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut random = Random::new(1);
    for length in [0, 1, 2, 31, 64, 65, 127, 256, 1460, 2049] {
        for (name, byte) in [("zeros", Some(0)), ("ones", Some(0xff)), ("random", None)] {
            let mut bytes = vec![length as u8, 0, (length / 3) as u8];
            bytes.extend((0..length + 64).map(|_| byte.unwrap_or(random.next() as u8)));
            files.push((format!("{name}-{length}"), bytes));
        }
    }
    files
}

/// Number of the change that leaves a segment unchanged.
const NO_CHANGE: u8 = u8::MAX;
const USUAL_SIZE: u8 = u8::MAX;
const POLL: u8 = 56;
const ADVANCE: u8 = 60;

const fn segment(flow: u8, change: u8, value: u8) -> [u8; 6] {
    [0, flow, change, USUAL_SIZE, value, 0]
}

fn scripts() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (number, policy) in Setup::policies().iter().enumerate() {
        files.push((format!("policy-{policy}"), bulk(number as u8)));
    }
    for first in (0..64).step_by(8) {
        files.push((format!("changes-{first}"), changes(first)));
    }
    for kind in 46..64 {
        files.push((format!("event-{kind}"), event(kind)));
    }
    files.push(("tunnels".to_owned(), in_tunnels(bulk(0))));
    for first in (84..104).step_by(8) {
        files.push((format!("tunnels-changes-{first}"), in_tunnels(changes(first))));
    }
    for seed in 0..5 {
        let mut random = Random::new(seed);
        let bytes = (0..8 + 6 * 100).map(|_| random.next() as u8).collect();
        files.push((format!("random-{seed}"), bytes));
    }
    files
}

/// Returns a script with eight flows in turn, then a run of one flow, over several polls.
fn bulk(policy: u8) -> Vec<u8> {
    let mut bytes = vec![policy, 0, 0, 0, 0, 0, 5, 1];
    for turn in 0..3 {
        (0..24).for_each(|flow| bytes.extend(segment(flow % 8, NO_CHANGE, 0)));
        (0..20).for_each(|_| bytes.extend(segment(turn, NO_CHANGE, 0)));
        bytes.extend([POLL, 0, 0, 0, 0, 0]);
        bytes.extend([ADVANCE, 0, 0, 0, 200, 200]);
    }
    bytes
}

/// Returns the script with most flows inside tunnels.
fn in_tunnels(mut script: Vec<u8>) -> Vec<u8> {
    script[7] = 12;
    script
}

/// Returns a script with two plain segments, a changed one, and two plain ones, for each of eight changes.
fn changes(first: u8) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0, 0, 4, 2];
    for change in first..first + 8 {
        for (number, change) in
            [NO_CHANGE, NO_CHANGE, change, NO_CHANGE, NO_CHANGE].iter().enumerate()
        {
            bytes.extend(segment(first / 8 % 4, *change, number as u8 * 7));
        }
        bytes.extend([POLL, 0, 0, 0, 0, 0]);
    }
    bytes
}

/// Returns a script with events of this kind between segments of two flows.
fn event(kind: u8) -> Vec<u8> {
    let mut bytes = vec![kind, 0, 0, 0, kind, 0, 2, 3];
    for value in 0..6 {
        for flow in [0, 1, 0, 0] {
            bytes.extend(segment(flow, NO_CHANGE, 0));
        }
        bytes.extend([kind, 0, 34 + value, value, value * 37, 90]);
    }
    bytes
}

/// Returns a random script for each initial state of a connection, or for that many settings.
fn tcp_scripts(count: u8) -> Vec<(String, Vec<u8>)> {
    let script = |number: u8| {
        let mut random = Random::new(number.into());
        let mut bytes: Vec<u8> = (0..400).map(|_| random.next() as u8).collect();
        // The third byte selects the state.
        bytes[2] = number;
        (format!("random-{number}"), bytes)
    };
    (0..count).map(script).collect()
}
