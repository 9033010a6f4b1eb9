//! Group memberships on the host's side: IGMPv3 (RFC 3376, RFC 9776) and MLDv2 (RFC 3810, RFC 9777).

use std::time::Duration;

use rxo_frame::Instant;
use rxo_host::link::{Channel, ChannelError, FrameOutcome, Link};

use crate::peer::*;

const GROUP: &str = "232.1.1.1";
const GROUP_V6: &str = "ff3e::8000:1";
/// The bytes before the message of every IGMPv3 report: sent to 224.0.0.22 and its Ethernet address (RFC
/// 1112, section 6.4), TTL 1, Internetwork Control, Router Alert (RFC 3376, sections 4 and 4.2.14).
const IGMP_HEAD: &str = "01005e000016 020000000002 0800 \
    46c0002c000040000102f9f30a000002e0000016 94040000";
/// The bytes before the message of every MLDv2 report: sent to ff02::16 from the link-local address, hop
/// limit 1, Router Alert (RFC 3810, sections 5 and 5.2.14).
const MLD_HEAD: &str = "333300000016 020000000002 86dd \
    6000000000340001 fe80000000000000000000fffe000002 ff020000000000000000000000000016 3a00050200000100";

fn channel(source: &str, group: &str) -> Channel {
    Channel::new(ip(source), ip(group)).expect("a channel")
}

fn ours() -> Channel {
    channel("10.0.0.9", GROUP)
}

fn ours_v6() -> Channel {
    channel("fd00::9", GROUP_V6)
}

fn hex(text: &str) -> String {
    text.chars().filter(|it| !it.is_whitespace()).collect()
}

/// Returns the bytes of `frames` in hexadecimal, one line per frame.
fn texts(frames: &[Vec<u8>]) -> String {
    frames.iter().map(|frame| text(frame)).collect::<Vec<_>>().join("\n")
}

fn text(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the type and the sources of the only record in a report about an IPv4 group.
fn record(frame: &[u8]) -> (u8, Vec<[u8; 4]>) {
    let message = &frame[14 + 24..];
    assert_eq!(message[..2], [0x22, 0]);
    assert_eq!(message[4..8], [0, 0, 0, 1], "one record");
    let sources = message[16..].chunks(4).map(|ip| ip.try_into().expect("an address"));
    (message[8], sources.collect())
}

/// Collects reports until no timer runs any more, each with its time in milliseconds.
fn reports(link: &mut Link) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(at) = link.poll_at() {
        link.on_timeout(at);
        all.extend(out(link).into_iter().map(|frame| (at.as_nanos() / 1_000_000, frame)));
    }
    all
}

fn igmp(to: &str, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    message[2..4].fill(0);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    let [.., b, c, d] = to.parse::<std::net::Ipv4Addr>().expect("an address").octets();
    ethernet([1, 0, 0x5e, b & 0x7f, c, d], PEER, 0x0800, &ipv4(2, "10.0.0.9", to, &message))
}

/// Returns a general IGMPv3 query that requests answers within `tenths` of a second.
fn general(tenths: u8) -> Vec<u8> {
    igmp("224.0.0.1", &[0x11, tenths, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0])
}

fn about_group(tenths: u8, sources: &[[u8; 4]]) -> Vec<u8> {
    let head = [0x11, tenths, 0, 0, 232, 1, 1, 1, 2, 125, 0, sources.len() as u8];
    igmp(GROUP, &[&head[..], &sources.concat()].concat())
}

/// Returns a link that has joined the channel and sent its reports.
fn member() -> Link {
    let mut link = link();
    link.join(ours(), at(0)).expect("a membership");
    out(&mut link);
    reports(&mut link);
    link
}

#[test]
fn a_join_is_reported_at_once_and_once_more() {
    let mut link = link();
    link.join(ours(), at(10)).expect("a membership");
    let report = hex(&format!("{IGMP_HEAD} 2200e5f100000001 05000001 e8010101 0a000009"));
    assert_eq!(texts(&out(&mut link)), report);
    let later = reports(&mut link);
    assert_eq!(later.iter().map(|(_, it)| text(it)).collect::<Vec<_>>(), [report]);
    assert!((10..=1_010).contains(&later[0].0), "within the Unsolicited Report Interval");
    assert_eq!(link.counters().group_reports, 2);
}

#[test]
fn a_leave_is_reported_twice() {
    let mut link = member();
    link.leave(ours(), at(5_000));
    let report = hex(&format!("{IGMP_HEAD} 2200e4f100000001 06000001 e8010101 0a000009"));
    assert_eq!(texts(&out(&mut link)), report);
    assert_eq!(reports(&mut link).iter().map(|(_, it)| text(it)).collect::<Vec<_>>(), [report]);
}

#[test]
fn mld_reports_from_the_link_local_address() {
    let mut link = link();
    let head = hex(MLD_HEAD);
    let [group, source] = ["ff3e0000000000000000000080000001", "fd000000000000000000000000000009"];
    link.join(ours_v6(), at(0)).expect("a membership");
    let report = hex(&format!("{head} 8f00f2b000000001 05000001 {group} {source}"));
    assert_eq!(texts(&out(&mut link)), report);
    link.leave(ours_v6(), at(1));
    let report = hex(&format!("{head} 8f00f1b000000001 06000001 {group} {source}"));
    assert_eq!(texts(&out(&mut link)), report);
}

/// Only the first member to join and the last one to leave cause reports.
#[test]
fn only_the_first_and_the_last_member_are_reported() {
    let mut link = member();
    link.join(ours(), at(5_000)).expect("a membership");
    link.leave(ours(), at(5_000));
    assert!(out(&mut link).is_empty());
    link.leave(ours(), at(5_000));
    assert_eq!(out(&mut link).len(), 1);
    link.leave(ours(), at(5_001));
    assert!(out(&mut link).is_empty(), "who has left cannot leave");
}

/// RFC 3376, section 5.1: a new change is reported together with the changes that must be repeated.
#[test]
fn a_change_of_mind_replaces_what_was_to_be_repeated() {
    let mut link = link();
    link.join(ours(), at(0)).expect("a membership");
    link.leave(ours(), at(1));
    let kinds: Vec<u8> = out(&mut link).iter().map(|frame| record(frame).0).collect();
    assert_eq!(kinds, [5, 6]);
    let later: Vec<u8> = reports(&mut link).iter().map(|(_, frame)| record(frame).0).collect();
    assert_eq!(later, [6], "nothing says any more that it was joined");
}

/// RFC 3376, section 5.2: the answer comes at a random time within the query's delay, and later reports use
/// the querier's robustness.
#[test]
fn a_general_query_is_answered_within_its_delay() {
    let mut times = Vec::new();
    for second in 10..40 {
        let mut link = member();
        assert!(answers(&mut link, &general(20), at(second * 1_000)).is_empty());
        let later = reports(&mut link);
        assert_eq!(later.len(), 1);
        assert_eq!(record(&later[0].1), (1, vec![[10, 0, 0, 9]]), "MODE_IS_INCLUDE");
        times.push(later[0].0 - second * 1_000);
    }
    assert!(times.iter().all(|millis| *millis <= 2_000));
    let mut link = member();
    let spread = |link: &mut Link, second: u64| {
        receives(link, &general(20), at(second * 1_000));
        reports(link)[0].0 - second * 1_000
    };
    let delays: Vec<u64> = (10..30).map(|second| spread(&mut link, second)).collect();
    assert!(delays.iter().max() > delays.iter().min(), "not always at the same time: {delays:?}");
}

/// RFC 3376, section 5.2, rule 1: a single answer serves two queries.
#[test]
fn a_query_that_is_answered_soon_anyway_gets_no_second_answer() {
    let mut link = member();
    receives(&mut link, &general(1), at(5_000));
    receives(&mut link, &about_group(255, &[]), at(5_000));
    receives(&mut link, &general(255), at(5_000));
    let later = reports(&mut link);
    assert!(later.len() == 1 && later[0].0 <= 5_100, "{later:x?}");
}

#[test]
fn a_query_about_sources_is_answered_for_those_that_are_wanted() {
    let mut link = member();
    link.join(channel("10.0.0.7", GROUP), at(3_000)).expect("a membership");
    reports(&mut link);
    out(&mut link);
    type Row<'a> = (&'a [[u8; 4]], Option<Vec<[u8; 4]>>);
    let rows: [Row<'_>; 4] = [
        (&[], Some(vec![[10, 0, 0, 7], [10, 0, 0, 9]])),
        (&[[10, 0, 0, 9]], Some(vec![[10, 0, 0, 9]])),
        (&[[10, 0, 0, 8], [10, 0, 0, 7]], Some(vec![[10, 0, 0, 7]])),
        (&[[10, 0, 0, 8]], None),
    ];
    for (asked, expected) in rows {
        receives(&mut link, &about_group(10, asked), at(10_000));
        let said: Vec<_> = reports(&mut link).iter().map(|(_, frame)| record(frame)).collect();
        let expected: Vec<_> = expected.into_iter().map(|sources| (1, sources)).collect();
        assert_eq!(said, expected, "{asked:?}");
    }
}

/// RFC 3376, section 5.2, rules 4 and 5: two queries about a group get one answer.
#[test]
fn questions_about_one_group_are_answered_together() {
    let mut link = member();
    link.join(channel("10.0.0.7", GROUP), at(3_000)).expect("a membership");
    reports(&mut link);
    out(&mut link);
    receives(&mut link, &about_group(10, &[[10, 0, 0, 9]]), at(10_000));
    receives(&mut link, &about_group(10, &[[10, 0, 0, 7]]), at(10_000));
    let later = reports(&mut link);
    assert_eq!(later.len(), 1);
    assert_eq!(record(&later[0].1), (1, vec![[10, 0, 0, 7], [10, 0, 0, 9]]));
}

/// A querier on a lossy link sets a higher robustness.
#[test]
fn the_querier_says_how_often_changes_are_reported() {
    let mut link = member();
    receives(&mut link, &igmp("224.0.0.1", &[0x11, 1, 0, 0, 0, 0, 0, 0, 5, 125, 0, 0]), at(5_000));
    reports(&mut link);
    link.leave(ours(), at(9_000));
    assert_eq!(out(&mut link).len() + reports(&mut link).len(), 5);
}

/// RFC 4604, section 2.2: no report of an older version, which could not contain the source.
#[test]
fn an_older_querier_gets_a_report_of_version_3_and_is_counted() {
    for query in [[0x11, 0, 0, 0, 0, 0, 0, 0], [0x11, 100, 0, 0, 0, 0, 0, 0]] {
        let mut link = member();
        receives(&mut link, &igmp("224.0.0.1", &query), at(5_000));
        let later = reports(&mut link);
        assert_eq!(record(&later[0].1), (1, vec![[10, 0, 0, 9]]));
        assert!((5_000..=15_000).contains(&later[0].0));
        assert_eq!((link.counters().group_queries, link.counters().older_queriers), (1, 1));
    }
}

fn mld_query(hops: u8, from: &str, options: [u8; 8], rest: &[u8]) -> Vec<u8> {
    let group = GROUP_V6.parse::<std::net::Ipv6Addr>().expect("an address").octets();
    let body = [&[0, 10, 0, 0][..], &group, rest].concat();
    let inner = icmpv6(hops, from, GROUP_V6, (130, 0), &body);
    let payload = [&options[..], &inner[40..]].concat();
    ethernet([0x33, 0x33, 0x80, 0, 0, 1], PEER, 0x86dd, &ipv6(0, hops, from, GROUP_V6, &payload))
}

const ROUTER_ALERT: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];

/// RFC 3810, section 6.2: a valid query has a link-local source, hop limit 1, and a Router Alert.
#[test]
fn mld_answers_valid_queries_only() {
    let no_alert = [58, 0, 1, 4, 0, 0, 0, 0];
    let rows = [
        (mld_query(1, "fe80::9", ROUTER_ALERT, &[2, 125, 0, 0]), 1),
        (mld_query(1, "fe80::9", ROUTER_ALERT, &[]), 1),
        (mld_query(2, "fe80::9", ROUTER_ALERT, &[2, 125, 0, 0]), 0),
        (mld_query(1, "fd00::9", ROUTER_ALERT, &[2, 125, 0, 0]), 0),
        (mld_query(1, "fe80::9", no_alert, &[2, 125, 0, 0]), 0),
    ];
    for (row, (query, count)) in rows.iter().enumerate() {
        let mut link = link();
        link.join(ours_v6(), at(0)).expect("a membership");
        reports(&mut link);
        out(&mut link);
        receives(&mut link, query, at(5_000));
        let later = reports(&mut link);
        assert_eq!(later.len(), *count, "row {row}");
        if let Some((millis, report)) = later.first() {
            assert!(*millis <= 5_010 && report[14 + 48] == 143 && report[14 + 48 + 8] == 1);
        }
    }
}

/// A host without memberships has nothing to report.
#[test]
fn who_belongs_to_nothing_answers_nothing() {
    let mut link = link();
    receives(&mut link, &general(10), at(0));
    receives(&mut link, &about_group(10, &[]), at(0));
    assert_eq!(link.poll_at(), None);
    let counters = link.counters();
    assert_eq!((counters.group_queries, counters.refused.other_address), (1, 1));
}

fn segment(from: &str, to: &str, mac: Mac) -> Vec<u8> {
    let mut tcp =
        [&[0x1b, 0x58, 0x1b, 0x58][..], &[0; 8], &[0x50, 0x10, 1, 0, 0, 0, 0, 0]].concat();
    let v4 = |text: &str| text.parse::<std::net::Ipv4Addr>().expect("an address").octets();
    let pseudo = [&v4(from)[..], &v4(to), &[0, 6, 0, 20], &tcp].concat();
    let sum = checksum(&pseudo);
    tcp[16..18].copy_from_slice(&sum);
    ethernet(mac, PEER, 0x0800, &ipv4(6, from, to, &tcp))
}

/// A parity packet of a cast: a datagram to the group. It is never answered.
#[test]
fn datagrams_to_the_group_pass_while_the_host_is_a_member() {
    let datagram = |from: &str, to: &str| {
        let udp = [0x1b, 0x58, 0x1b, 0x58, 0, 12, 0, 0, 1, 2, 3, 4];
        ethernet([1, 0, 0x5e, 1, 1, 1], PEER, 0x0800, &ipv4(17, from, to, &udp))
    };
    let passes = |link: &mut Link, frame: &[u8]| {
        matches!(receives(link, frame, at(9_000)), FrameOutcome::ToGroup(_))
    };
    let right = datagram("10.0.0.9", GROUP);
    assert!(!passes(&mut link(), &right));
    let mut link = member();
    assert!(passes(&mut link, &right));
    assert!(!passes(&mut link, &datagram("10.0.0.8", GROUP)), "another source");
    assert!(!passes(&mut link, &datagram("10.0.0.9", "232.1.1.2")), "another group");
    assert_eq!((link.counters().refused.total(), link.counters().closed_ports), (2, 0));
}

/// Segments to the group pass the gate while the host is a member, and only from its source; also as unicast
/// frames, which some bridges and access points send.
#[test]
fn the_gate_admits_segments_of_the_channel_only() {
    const GROUP_MAC: Mac = [1, 0, 0x5e, 1, 1, 1];
    let passes = |link: &mut Link, frame: &[u8]| {
        matches!(receives(link, frame, at(9_000)), FrameOutcome::Segment(_))
    };
    let right = segment("10.0.0.9", GROUP, GROUP_MAC);
    assert!(!passes(&mut link(), &right));
    let mut link = member();
    assert!(passes(&mut link, &right));
    assert!(passes(&mut link, &segment("10.0.0.9", GROUP, OURS)));
    assert!(!passes(&mut link, &segment("10.0.0.8", GROUP, GROUP_MAC)), "another source");
    assert!(!passes(&mut link, &segment("10.0.0.9", "232.1.1.2", GROUP_MAC)), "another group");
    assert!(
        !passes(&mut link, &segment("10.0.0.9", "10.0.0.2", GROUP_MAC)),
        "unicast in a group's frame"
    );
    assert_eq!(link.counters().refused.total(), 3);
    link.leave(ours(), at(9_000));
    assert!(!passes(&mut link, &right));
    assert!(
        !passes(&mut link, &segment("10.0.0.9", GROUP, OURS)),
        "the gate has forgotten the last flow"
    );
}

/// An echo reply would have to come from the group's address.
#[test]
fn a_ping_to_the_group_is_not_answered() {
    let ping = icmp("10.0.0.9", GROUP, 8, 0, &[0; 4]);
    let ping = ethernet([1, 0, 0x5e, 1, 1, 1], PEER, 0x0800, &ping);
    assert!(answers(&mut member(), &ping, at(9_000)).is_empty());
}

#[test]
fn the_device_is_told_the_groups_address() {
    let mut link = link();
    link.join(channel("10.0.0.9", "232.129.2.3"), at(0)).expect("a membership");
    link.join(ours_v6(), at(0)).expect("a membership");
    let groups: Vec<Mac> = link.groups().collect();
    assert!(groups.contains(&[1, 0, 0x5e, 1, 2, 3]), "23 bits of the group");
    assert!(groups.contains(&[0x33, 0x33, 0x80, 0, 0, 1]));
}

#[test]
fn channels_that_cannot_be_are_named() {
    let said = |source: &str, group: &str| {
        Channel::new(ip(source), ip(group)).expect_err("an error").to_string()
    };
    let remedy =
        "is no group that can be joined; choose one of 232.0.0.0/8, or ff3e::8000:0 and above";
    for group in ["10.0.0.1", "224.0.0.1", "224.0.0.251", "ff02::1", "ff01::5", "fd00::1"] {
        assert_eq!(said("10.0.0.9", group), format!("{group} {remedy}"));
    }
    let remedy = "give the address of one host, of the same IP version";
    for source in ["fd00::9", "0.0.0.0", "232.1.1.1", "127.0.0.1"] {
        assert_eq!(said(source, GROUP), format!("{source} cannot send to {GROUP}; {remedy}"));
    }
}

/// The number of memberships is bounded: 32 channels fit into one report, which fits into a packet of 1,280
/// bytes.
#[test]
fn memberships_are_bounded() {
    let mut link = link();
    let nth = |n: u16| channel("fd00::9", &format!("ff3e::8000:{n:x}"));
    for n in 0..32 {
        link.join(nth(n), at(0)).expect("a membership");
    }
    assert_eq!(link.join(nth(32), at(0)), Err(ChannelError::Full { most: 32 }));
    for n in 0..32 {
        link.leave(nth(n), at(0));
        link.join(nth(n + 32), at(0)).expect("room again");
    }
    let longest = out(&mut link).iter().map(Vec::len).max();
    assert!(longest.is_some_and(|bytes| bytes <= 14 + 1_280), "{longest:?}");
    let only_v4 = rxo_host::link::LinkConfig::ethernet(
        OURS,
        vec!["10.0.0.2/24".parse().expect("an address")],
    );
    let refused = Link::new(only_v4).expect("a link").join(ours_v6(), at(0));
    assert_eq!(refused, Err(ChannelError::Version { group: ip(GROUP_V6) }));
}

/// A flood of queries causes only one answer, whatever the queries contain.
#[test]
fn a_flood_of_queries_is_answered_once() {
    let mut link = member();
    for n in 0..10_000_u32 {
        let [.., c, d] = n.to_be_bytes();
        receives(&mut link, &about_group(100, &[[10, 0, c, d], [10, 0, 0, 9]]), at(5_000));
        receives(&mut link, &general(100), at(5_000));
    }
    let latest = at(5_000) + Duration::from_secs(10);
    let later = reports(&mut link);
    assert!(later.len() <= 2, "{} reports", later.len());
    assert!(later.iter().all(|(millis, _)| Instant::from_micros(millis * 1_000) <= latest));
}
