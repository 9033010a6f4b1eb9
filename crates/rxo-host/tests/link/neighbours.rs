//! Resolving neighbours, and answering their requests (RFC 826, RFC 5227, RFC 4861).

use rxo_host::link::{FrameOutcome, Resolve};

use crate::peer::*;

const NOBODY: Mac = [0; 6];
const US: (Mac, &str) = (OURS, "10.0.0.2");
const THEM: (Mac, &str) = (PEER, "10.0.0.9");

/// RFC 826: a request, its reply, and the retry of waiting packets.
#[test]
fn a_neighbour_is_asked_for_by_arp() {
    let mut link = link();
    assert_eq!(link.resolve(ip("10.0.0.9"), at(0)), Resolve::Pending);
    assert_eq!(out(&mut link), [arp(ALL, 1, US, (NOBODY, "10.0.0.9"))]);
    assert_eq!(link.resolve(ip("10.0.0.9"), at(1)), Resolve::Pending);
    assert_eq!(out(&mut link).len(), 0);
    let reply = arp(OURS, 2, THEM, US);
    assert_eq!(receives(&mut link, &reply, at(2)), FrameOutcome::Neighbour(ip("10.0.0.9")));
    assert_eq!(link.resolve(ip("10.0.0.9"), at(3)), Resolve::Resolved(PEER));
    // A repeated reply is no news.
    assert_eq!(receives(&mut link, &reply, at(4)), FrameOutcome::Nothing);
}

/// RFC 4861, section 7.2.2: the request goes to the solicited-node group.
#[test]
fn a_neighbour_is_asked_for_by_neighbour_discovery() {
    let mut link = link();
    assert_eq!(link.resolve(ip("fd00::9"), at(0)), Resolve::Pending);
    let expected = {
        let target = "fd00::9".parse::<std::net::Ipv6Addr>().unwrap().octets();
        let rest = [&[0; 4][..], &target, &[1, 1], &OURS].concat();
        let packet = icmpv6(255, "fd00::2", "ff02::1:ff00:9", (135, 0), &rest);
        ethernet([0x33, 0x33, 0xff, 0, 0, 9], OURS, 0x86dd, &packet)
    };
    assert_eq!(out(&mut link), [expected]);
    let heard = receives(&mut link, &advertisement("fd00::9", 0x60), at(1));
    assert_eq!(heard, FrameOutcome::Neighbour(ip("fd00::9")));
    assert_eq!(link.resolve(ip("fd00::9"), at(2)), Resolve::Resolved(PEER));
}

#[test]
fn packets_for_afar_wait_for_the_gateway() {
    let mut link = link();
    assert_eq!(link.resolve(ip("8.8.8.8"), at(0)), Resolve::Pending);
    assert_eq!(out(&mut link), [arp(ALL, 1, US, (NOBODY, "10.0.0.1"))]);
    receives(&mut link, &arp(OURS, 2, (PEER, "10.0.0.1"), US), at(1));
    assert_eq!(link.resolve(ip("9.9.9.9"), at(2)), Resolve::Resolved(PEER));
    assert_eq!(link.resolve(ip("2001:db8::1"), at(2)), Resolve::NoRoute);
}

#[test]
fn a_neighbour_that_is_not_there_is_unreachable() {
    let mut link = link();
    link.resolve(ip("10.0.0.9"), at(0));
    let mut asked = out(&mut link).len();
    for second in 1..=3 {
        assert_eq!(link.poll_at(), Some(at(second * 1_000)));
        link.on_timeout(at(second * 1_000));
        asked += out(&mut link).len();
    }
    assert_eq!(asked, 3);
    assert_eq!(link.resolve(ip("10.0.0.9"), at(3_000)), Resolve::Unreachable);
    link.on_timeout(at(4_000));
    assert_eq!((link.poll_at(), link.neighbours()), (None, 0));
}

/// RFC 826; RFC 4861, section 7.2.4: a neighbour that requests our address gets an answer, and its own
/// address is stored, so that it need not be resolved.
#[test]
fn who_asks_for_us_is_told_and_remembered() {
    let mut link = link();
    let told = answers(&mut link, &arp(ALL, 1, THEM, (NOBODY, "10.0.0.2")), at(0));
    assert_eq!(told, [arp(PEER, 2, US, THEM)]);
    assert_eq!(link.resolve(ip("10.0.0.9"), at(1)), Resolve::Resolved(PEER));

    let told = answers(&mut link, &solicitation("fd00::9", "fd00::2", true), at(2));
    let target = "fd00::2".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let rest = [&[0x60, 0, 0, 0][..], &target, &[2, 1], &OURS].concat();
    let expected = icmpv6(255, "fd00::2", "fd00::9", (136, 0), &rest);
    assert_eq!(told, [ethernet(PEER, OURS, 0x86dd, &expected)]);
    assert_eq!(link.resolve(ip("fd00::9"), at(3)), Resolve::Resolved(PEER));
}

/// RFC 5227, section 2.1.1, and RFC 4862, section 5.4.3: the probe of another host for our address is
/// answered.
#[test]
fn who_probes_for_our_address_hears_that_it_is_taken() {
    let mut link = link();
    let probe = arp(ALL, 1, (PEER, "0.0.0.0"), (NOBODY, "10.0.0.2"));
    let told = answers(&mut link, &probe, at(0));
    assert_eq!(told, [arp(PEER, 2, US, (PEER, "0.0.0.0"))]);
    let told = answers(&mut link, &solicitation("::", "fd00::2", false), at(1));
    assert_eq!(told.len(), 1);
    assert_eq!(told[0][..6], [0x33, 0x33, 0, 0, 0, 1]);
    assert_eq!(link.neighbours(), 0);
}

#[test]
fn questions_for_others_are_left_alone() {
    let mut link = link();
    let told = answers(&mut link, &arp(ALL, 1, THEM, (NOBODY, "10.0.0.3")), at(0));
    assert_eq!(told.len(), 0);
    assert_eq!(answers(&mut link, &solicitation("fd00::9", "fd00::3", true), at(0)).len(), 0);
    assert_eq!(link.neighbours(), 0);
}

/// RFC 4861, section 7.1: a message that a router may have forwarded is ignored.
#[test]
fn neighbour_discovery_comes_from_the_link_alone() {
    let mut link = link();
    link.resolve(ip("fd00::9"), at(0));
    out(&mut link);
    let mut forwarded = advertisement("fd00::9", 0x60);
    forwarded[14 + 7] = 254;
    assert_eq!(receives(&mut link, &forwarded, at(1)), FrameOutcome::Nothing);
    let mut changed = advertisement("fd00::9", 0x60);
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(receives(&mut link, &changed, at(1)), FrameOutcome::Nothing);
    assert_eq!(link.resolve(ip("fd00::9"), at(2)), Resolve::Pending);
}

#[test]
fn a_name_from_another_network_is_not_learnt() {
    let mut link = link();
    let told = answers(&mut link, &arp(ALL, 1, (PEER, "10.9.0.9"), (NOBODY, "10.0.0.2")), at(0));
    assert_eq!(told.len(), 1);
    assert_eq!(link.neighbours(), 0);
}

/// A neighbour with a new device announces its address to all (RFC 5227, section 3).
#[test]
fn an_announcement_changes_what_is_known() {
    let mut link = link();
    link.resolve(ip("10.0.0.9"), at(0));
    receives(&mut link, &arp(OURS, 2, THEM, US), at(1));
    let new = [2, 0, 0, 0, 0, 77];
    receives(&mut link, &arp(ALL, 1, (new, "10.0.0.9"), (NOBODY, "10.0.0.9")), at(2));
    assert_eq!(link.resolve(ip("10.0.0.9"), at(3)), Resolve::Resolved(new));
}

/// RFC 5227, section 2.4, rule b: the address is defended, but at a limited rate.
#[test]
fn our_address_is_defended() {
    let mut link = link();
    let claim = arp(ALL, 1, (PEER, "10.0.0.2"), (NOBODY, "10.0.0.2"));
    let ours = arp(ALL, 1, US, (NOBODY, "10.0.0.2"));
    assert_eq!(answers(&mut link, &claim, at(0)), [ours]);
    assert_eq!(answers(&mut link, &claim, at(1)).len(), 0);
    assert_eq!(link.counters().conflicts, 2);
}

/// RFC 4861, section 7.2.6; RFC 5227, section 2.3: announcements replace entries of a previous owner.
#[test]
fn all_addresses_are_announced() {
    let mut link = link();
    link.announce();
    let sent = out(&mut link);
    assert_eq!(sent[0], arp(ALL, 1, US, (NOBODY, "10.0.0.2")));
    // Two addresses are IPv6: the configured one and the link-local one.
    assert_eq!(sent.len(), 3);
    assert!(link.is_ours(ip("fe80::ff:fe00:2")));
    let groups: Vec<Mac> = link.groups().collect();
    assert_eq!(groups[0], [0x33, 0x33, 0xff, 0, 0, 2]);
}

/// A flood of SYNs from addresses on the link must not become a flood of requests.
#[test]
fn questions_are_limited() {
    let mut link = link();
    for host in 0..5_000_u32 {
        let name = std::net::Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(host + 1_000));
        assert_eq!(link.resolve(name.into(), at(0)), Resolve::Pending);
        assert!(link.neighbours() <= 4_096 / 2 + 1);
    }
    assert_eq!(out(&mut link).len(), 64);
}
