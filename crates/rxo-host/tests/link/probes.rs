//! Probes that detect if another station uses the host's addresses (RFC 5227; RFC 4862, section 5.4).

use rxo_frame::{Duration, Instant};
use rxo_host::link::{Conflict, Link, Probe};

use crate::peer::*;

const NOBODY: Mac = [0; 6];
const US: (Mac, &str) = (OURS, "10.0.0.2");

/// Returns a link that sends two probes, 200 ms apart, and the frames that it has sent at 0 ms.
fn probing() -> (Link, Vec<Vec<u8>>) {
    let mut link = link();
    link.probe(Probe::default(), true);
    link.on_timeout(at(0));
    let sent = out(&mut link);
    (link, sent)
}

/// Returns the probe of RFC 4862, section 5.4.2, with an unspecified source and without an option.
fn v6_probe(from: Mac) -> Vec<u8> {
    let target = "fd00::2".parse::<std::net::Ipv6Addr>().expect("an address").octets();
    let rest = [&[0; 4][..], &target].concat();
    let packet = icmpv6(255, "::", "ff02::1:ff00:2", (135, 0), &rest);
    ethernet([0x33, 0x33, 0xff, 0, 0, 2], from, 0x86dd, &packet)
}

fn claims(frame: &[u8]) -> (Option<Conflict>, u64) {
    let (mut link, _) = probing();
    assert_eq!(answers(&mut link, frame, at(10)).len(), 0, "it is not ours yet");
    (link.conflict(), link.counters().conflicts)
}

/// Addresses are probed twice and then announced (RFC 5227, sections 2.1.1 (a) and 2.3, and RFC 4862, section
/// 5.4.2 (a)).
#[test]
fn addresses_are_probed_twice_and_then_announced() {
    let (mut link, first) = probing();
    assert_eq!(first.len(), 3, "IPv4, IPv6 and the link-local one");
    assert_eq!(first[0], arp(ALL, 1, (OURS, "0.0.0.0"), (NOBODY, "10.0.0.2")));
    assert_eq!(first[1], v6_probe(OURS));
    assert_eq!(link.poll_at(), Some(at(200)));
    link.on_timeout(at(200));
    assert_eq!(out(&mut link), first);
    link.on_timeout(at(399));
    assert!(link.is_probing() && out(&mut link).is_empty());
    link.on_timeout(at(400));
    assert!(!link.is_probing());
    assert_eq!(link.poll_at(), None);
    let announced = out(&mut link);
    assert_eq!(announced.len(), 3);
    assert_eq!(announced[0], arp(ALL, 1, US, (NOBODY, "10.0.0.2")));
}

/// An answer to a probe (RFC 5227, section 2.1.1 (c), and RFC 4862, section 5.4.4).
#[test]
fn an_answer_is_a_conflict() {
    let v4 = Conflict { address: ip("10.0.0.2"), mac: PEER };
    let reply = arp(OURS, 2, (PEER, "10.0.0.2"), (OURS, "0.0.0.0"));
    assert_eq!(claims(&reply), (Some(v4), 1));
    let v6 = Conflict { address: ip("fd00::2"), mac: PEER };
    assert_eq!(claims(&advertisement("fd00::2", 0x20)), (Some(v6), 1));
    assert_eq!(
        v4.to_string(),
        "address 10.0.0.2 is in use: 02:00:00:00:00:09 answers for it; stop that host, or choose another address"
    );
}

/// RFC 5227, section 2.1.1 (c), and RFC 4862, section 5.4.3: two hosts that probe at the same time both
/// detect it.
#[test]
fn another_probe_is_a_conflict_and_our_own_is_none() {
    let probe = |from| arp(ALL, 1, (from, "0.0.0.0"), (NOBODY, "10.0.0.2"));
    assert_eq!(claims(&probe(PEER)).1, 1);
    assert_eq!(claims(&probe(OURS)), (None, 0));
    assert_eq!(claims(&v6_probe(PEER)).1, 1);
    assert_eq!(claims(&v6_probe(OURS)), (None, 0));
}

#[test]
fn who_asks_for_the_address_is_not_answered_before_it_is_ours() {
    let question = arp(ALL, 1, (PEER, "10.0.0.9"), (NOBODY, "10.0.0.2"));
    assert_eq!(claims(&question), (None, 0));
    assert_eq!(claims(&solicitation("fd00::9", "fd00::2", true)), (None, 0));
    let (mut link, _) = probing();
    [200, 400].into_iter().for_each(|millis| link.on_timeout(at(millis)));
    out(&mut link);
    assert_eq!(answers(&mut link, &question, at(401)).len(), 1);
}

/// A conflict prevents the announcement (RFC 4862, section 5.4.5; RFC 5227, section 2.1.1 (c)).
#[test]
fn an_address_of_another_station_is_not_announced() {
    let (mut link, _) = probing();
    receives(&mut link, &arp(OURS, 2, (PEER, "10.0.0.2"), (OURS, "0.0.0.0")), at(1));
    [200, 400].into_iter().for_each(|millis| link.on_timeout(at(millis)));
    assert_eq!(out(&mut link).len(), 3, "only the second probes");
    assert!(!link.is_probing());
}

/// RFC 5227, section 2.4: the first claim is stored, and each is counted.
#[test]
fn a_later_claim_is_noted_once() {
    let mut link = link();
    assert_eq!(link.conflict(), None);
    receives(&mut link, &arp(ALL, 1, (PEER, "10.0.0.2"), (NOBODY, "10.0.0.2")), at(0));
    receives(&mut link, &advertisement("fd00::2", 0x20), at(1));
    assert_eq!(link.conflict(), Some(Conflict { address: ip("10.0.0.2"), mac: PEER }));
    assert_eq!(link.counters().conflicts, 2);
}

#[test]
fn a_shard_that_does_not_send_is_silent_as_long() {
    let mut link = link();
    link.probe(Probe { count: 1, interval: Duration::from_millis(50) }, false);
    link.on_timeout(Instant::ZERO);
    assert!(link.is_probing());
    link.on_timeout(at(50));
    assert!(!link.is_probing() && out(&mut link).is_empty());
}
