//! One row for each reason. Each row is judged twice: by the rules alone, and by an engine that receives the
//! packets as they are, with a VLAN tag, and without a link header. The tag bypasses the fast tiers, so the
//! same packet must get the same reason on every path.

mod acks;
mod alone;
mod data;

use std::collections::BTreeSet;
use std::vec::Vec;

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_testkit::{Packet, seg};
use rxo_wire::{Parsed, TcpSegment, Transport, parse};

use super::Verdict;
use crate::{BypassReason, Config, Counters, Engine, FlushReason, Policy};

/// One test case: a flow's held segments, the next one, and the expected verdict.
struct Row {
    policy: Policy,
    /// The segments that the flow holds.
    held: Vec<Packet>,
    next: Packet,
    verdict: Verdict,
}

/// Builds rows of one policy from held packets, next packet and verdict.
fn rows(policy: Policy, rows: Vec<(Vec<Packet>, Packet, Verdict)>) -> impl Iterator<Item = Row> {
    rows.into_iter().map(move |(held, next, verdict)| Row { policy, held, next, verdict })
}

/// Builds the segment that begins `bytes` after the start of [`seg`].
fn at(bytes: u32) -> Packet {
    seg().seq(100 + bytes)
}

/// Parses `frame`, which must be a TCP segment.
fn read(frame: &Frame<Vec<u8>>) -> (Parsed, TcpSegment) {
    let parsed = parse(frame.bytes()).expect("headers that can be read");
    match parsed.transport {
        Transport::Tcp(tcp) => (parsed, tcp),
        other => panic!("{other:?} is no TCP segment"),
    }
}

/// Returns every reason that an engine counts for `packets` in one poll, once per count. Segments that are
/// still held at the end are not included.
fn counted(policy: Policy, packets: &[Packet], link: LinkKind) -> Vec<&'static str> {
    let mut config = Config::new(policy, 1);
    config.link = link;
    let mut engine = Engine::new(config).expect("a valid policy");
    let mut batch = packets.iter().map(Packet::frame).collect();
    engine.push(&mut batch, Instant::ZERO, |_| ());
    reasons(engine.counters())
}

fn reasons(counters: &Counters) -> Vec<&'static str> {
    let many = |name, count: u64| core::iter::repeat_n(name, count as usize);
    let bypassed = BypassReason::ALL.iter().flat_map(|of| many(of.name(), counters.bypassed(*of)));
    let flushed = FlushReason::ALL.iter().flat_map(|of| many(of.name(), counters.flushed(*of)));
    bypassed.chain(flushed).collect()
}

/// Asserts that an engine counts the reasons `expected` for `packets`, on every path that they can take.
fn assert_counted(policy: Policy, packets: &[Packet], mut expected: Vec<&'static str>) {
    let sorted = |mut reasons: Vec<_>| {
        reasons.sort_unstable();
        reasons
    };
    expected.sort_unstable();
    let changed =
        |change: fn(Packet) -> Packet| -> Vec<_> { packets.iter().cloned().map(change).collect() };
    let tagged = changed(|packet| packet.vlan(7));
    let raw = changed(Packet::raw_ip);
    let ways = [
        ("as they are", packets, LinkKind::Ethernet),
        ("tagged", &tagged, LinkKind::Ethernet),
        ("raw", &raw, LinkKind::RawIp),
    ];
    for (way, packets, link) in ways {
        let counted = sorted(counted(policy, packets, link));
        assert_eq!(counted, expected, "{way}: {packets:#?}");
    }
}

/// Returns the reasons that an engine counts when it applies `verdict`.
fn names(verdict: Verdict) -> Vec<&'static str> {
    let (flushed, bypassed) = match verdict {
        Verdict::Start(close) | Verdict::Append(close) => ([close, None], None),
        Verdict::FlushThenStart(flush, close) => ([Some(flush), close], None),
        Verdict::FlushThenBypass(flush, bypass) => ([Some(flush), None], Some(bypass)),
        Verdict::Bypass(bypass) => ([None, None], Some(bypass)),
    };
    let flushed = flushed.into_iter().flatten().map(FlushReason::name);
    flushed.chain(bypassed.map(BypassReason::name)).collect()
}

/// Compares a row with the verdict `judged` of the rules, and with engines.
fn check(row: &Row, judged: Verdict) {
    assert_eq!(judged, row.verdict, "{:#?} after {:#?}", row.next, row.held);
    let packets: Vec<_> = row.held.iter().chain([&row.next]).cloned().collect();
    assert_counted(row.policy, &packets, names(row.verdict));
}

/// The flush reasons that do not come from rules between segments: time, capacity, and requests of the
/// caller.
const OF_THE_ENGINE: [&str; 15] = [
    "end_of_poll",
    "lone_segment",
    "poll_limit",
    "receiver_idle",
    "enough_segments",
    "hold_budget",
    "little_gain",
    "packet_limit",
    "timeout",
    "evicted",
    "collision",
    "memory",
    "policy_change",
    "shutdown",
    "not_ip",
];

#[test]
fn every_reason_has_a_row() {
    let rows = data::all().chain(acks::all()).flat_map(|row| names(row.verdict));
    let alone = alone::all().into_iter().flat_map(|(_, _, reasons)| reasons);
    let found: BTreeSet<_> = rows.chain(alone).chain(OF_THE_ENGINE).collect();
    let bypassed = BypassReason::ALL.iter().map(|reason| reason.name());
    let flushed = FlushReason::ALL.iter().map(|reason| reason.name());
    let missing: Vec<_> = bypassed.chain(flushed).filter(|name| !found.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
}
