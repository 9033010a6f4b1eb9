//! Runs a transfer twice, with and without the fast path: all packets sent are equal.

use std::time::Duration;

use proptest::prelude::*;
use rxo_coalesce::{Hold, PureAckRule};
use rxo_device::{MemoryLink, MemoryOptions};
use rxo_frame::{ChecksumStatus, Frame, LinkKind};
use rxo_host::{FallbackReason, FastCounters, FastModules, FastPath, HostConfig, TcpStream};
use rxo_tcp::AckPolicy;
use rxo_wire::{Parsed, Transport};

use crate::world::{World, drain, fill, options, pattern};

/// A transfer, and the treatment of its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) link: LinkKind,
    pub(super) is_v6: bool,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// `true` if the device verifies checksums.
    pub(super) verifies: bool,
    /// One packet in this many is lost, in each direction; 0 for none.
    pub(super) lose_every: [usize; 2],
    /// One ACK in this many is duplicated; 0 for none.
    pub(super) repeat_every: usize,
    /// The hold policy of both engines. If it holds beyond a poll, ACKs bypass the engine; otherwise the slow
    /// path would hold them too.
    pub(super) hold: Hold,
    /// Number of connections that send at the same time.
    pub(super) streams: usize,
    /// `true` if the receiver sends data too.
    pub(super) both_ways: bool,
    pub(super) bytes: usize,
}

/// The packets that each host sent, in order, and the counters of the sender's fast path.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    /// The packets by local port of the client.
    packets: Vec<Vec<Vec<u8>>>,
    statistics: Vec<String>,
}

/// The times at which the fast path of both hosts is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    Never,
    Always,
    /// The fast path is on from the handshake for this many rounds, then off.
    Until(usize),
    /// The fast path is toggled every few rounds.
    Toggled,
    /// The fast path is on, with one call per ACK.
    OneByOne,
}

impl On {
    /// Sets the switches before round `turn` of the transfer.
    fn switch(self, world: &World, turn: usize) {
        match self {
            Self::Toggled if turn.is_multiple_of(7) => {
                let host = world.at_client();
                let is_on = host.fast_path().has(FastModules::PURE_ACK);
                host.set_fast_path(if is_on { FastModules::OFF } else { FastModules::PURE_ACK });
            }
            Self::Until(last) if turn == last => {
                let hosts = [world.at_client(), world.at_server()];
                hosts.iter().for_each(|host| host.set_fast_path(FastModules::OFF));
            }
            _ => {}
        }
    }
}

impl Outcome {
    /// A hash of all sent packets in order (64-bit FNV-1a), and their number.
    fn recorded(&self) -> (u64, usize) {
        let packets = self.packets.iter().flatten();
        let bytes = packets.clone().flat_map(|packet| {
            let length = packet.len() as u32;
            length.to_be_bytes().into_iter().chain(packet.iter().copied())
        });
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash, packets.count())
    }
}

/// Carries the packets of one direction: loses, duplicates and records them.
struct Way {
    lose_every: usize,
    repeat_every: usize,
    /// The link kind if PSH must be cleared, because an engine does not hold segments with PSH.
    clears_psh: Option<LinkKind>,
}

impl Way {
    /// Moves packets to the other host. `record` returns the number of packets of the connection before.
    fn carry(&self, link: &MemoryLink, verifies: bool, record: &mut impl FnMut(&[u8]) -> usize) {
        for mut sent in link.take_all() {
            self.clears_psh.into_iter().for_each(|kind| clear_psh(kind, &mut sent.bytes));
            let seen = record(&sent.bytes);
            if self.lose_every != 0 && seen.is_multiple_of(self.lose_every) && seen != 0 {
                continue;
            }
            let checksum = if verifies { ChecksumStatus::Verified } else { sent.offload.checksum };
            let gso = sent.offload.gso;
            let frame = Frame { checksum, gso, ..Frame::new(&sent.bytes[..], sent.sent_at) };
            link.push(&frame);
            let repeats = self.repeat_every != 0 && seen.is_multiple_of(self.repeat_every);
            if repeats && sent.bytes.len() <= 86 {
                link.push(&frame);
            }
        }
    }
}

impl Course {
    fn world(self, on: On) -> World {
        let gso_bytes = 0;
        let options = MemoryOptions { link: self.link, gso_bytes, ..options() };
        World::with(options, |config: &mut HostConfig| {
            config.tcp.acks = AckPolicy::EverySecondSegment;
            config.tcp.sack = self.sack;
            config.tcp.timestamps = self.timestamps;
            if self.hold != Hold::EndOfPoll {
                let policy = &mut config.engine.policy;
                (policy.hold, policy.pure_acks) = (self.hold, PureAckRule::Bypass);
            }
            let is_on = matches!(on, On::Always | On::OneByOne | On::Until(_));
            let modules = if is_on { FastModules::PURE_ACK } else { FastModules::OFF };
            let one_by_one = on == On::OneByOne;
            config.fast_path = FastPath { modules, one_by_one, ..FastPath::default() };
        })
    }

    /// Returns `true` if both paths must send the same packets. [`Hold::EveryNPackets`] counts all packets of
    /// an engine, of any flow, but no consumed ACKs (docs/fast-path.md). So packets of the other direction are
    /// delivered later, and other flows at other moments.
    fn is_the_same(self) -> bool {
        let counts_packets = matches!(self.hold, Hold::EveryNPackets(_));
        !counts_packets || !self.both_ways && self.streams == 1
    }

    /// Runs the transfer. Returns the sent packets, and the counters of the client's fast path.
    pub(super) fn run(self, on: On) -> (Outcome, FastCounters) {
        self.run_until(on, MOST_TURNS)
    }

    /// Runs at most `most` rounds of the transfer.
    fn run_until(self, on: On, most: usize) -> (Outcome, FastCounters) {
        let mut world = self.world(on);
        let address = if self.is_v6 { "[fd00::2]:80" } else { "10.0.0.2:80" };
        let listener = world.at_server().listen(address.parse().unwrap(), 16).unwrap();
        listener.set_nonblocking(true).unwrap();
        let pairs: Vec<_> = (0..self.streams).map(|_| world.connected(&listener)).collect();
        let mut transfer = Transfer::new(self, &pairs);
        let mut turn = 0;
        loop {
            assert!(turn < MOST_TURNS, "{self:?} does not end: {:?}", transfer.read);
            on.switch(&world, turn);
            if turn == most || transfer.step(&mut world) {
                let counters = world.client.counters().fast;
                return (transfer.outcome(), counters);
            }
            turn += 1;
        }
    }
}

/// A running transfer.
struct Transfer<'a> {
    course: Course,
    pairs: &'a [(TcpStream, TcpStream)],
    data: Vec<u8>,
    turns: usize,
    sent: Vec<usize>,
    read: Vec<usize>,
    ways: [Way; 2],
    packets: Vec<Vec<Vec<u8>>>,
    /// Number of packets of each connection so far, in each direction.
    seen: Vec<[usize; 2]>,
}

impl<'a> Transfer<'a> {
    fn new(course: Course, pairs: &'a [(TcpStream, TcpStream)]) -> Self {
        let clears_psh = (course.hold != Hold::EndOfPoll).then_some(course.link);
        let way = |lose_every, repeat_every| Way { lose_every, repeat_every, clears_psh };
        let [there, back] = course.lose_every;
        Self {
            course,
            pairs,
            data: pattern(course.bytes),
            turns: 0,
            sent: vec![0; pairs.len()],
            read: vec![0; pairs.len()],
            ways: [way(there, 0), way(back, course.repeat_every)],
            packets: vec![Vec::new(); pairs.len()],
            seen: vec![[0; 2]; pairs.len()],
        }
    }

    /// Runs one round trip. Returns `true` if all data has arrived.
    fn step(&mut self, world: &mut World) -> bool {
        self.turns += 1;
        for (n, (stream, accepted)) in self.pairs.iter().enumerate() {
            self.sent[n] += fill(stream, &self.data[self.sent[n]..]);
            let read = drain(accepted).unwrap().0;
            assert!(self.data[self.read[n]..].starts_with(&read), "text in order");
            self.read[n] += read.len();
            if self.course.both_ways && !read.is_empty() {
                fill(accepted, &read[..self.reply(read.len())]);
            }
            drain(stream).unwrap();
        }
        world.client.turn(world.now).unwrap();
        self.carry(world, 0);
        world.server.turn(world.now).unwrap();
        self.carry(world, 1);
        let due = [world.client.poll_at(), world.server.poll_at()].into_iter().flatten().min();
        let is_quiet = world.there.is_silent() && world.back.is_silent();
        let next = world.now + Duration::from_micros(100);
        world.now = due.filter(|due| is_quiet && *due > next).unwrap_or(next);
        world.there.set_now(world.now);
        world.back.set_now(world.now);
        let is_idle = self.pairs.iter().all(|(stream, _)| {
            let seen = stream.statistics();
            seen.snd_una == seen.snd_nxt && seen.unsent == 0
        });
        self.read.iter().all(|read| *read == self.course.bytes) && is_idle
    }

    /// Returns the number of bytes that the receiver answers to `read` bytes. If the engine holds segments,
    /// several are sent in one round, and none in the next.
    fn reply(&self, read: usize) -> usize {
        match (self.course.hold, self.turns % 3) {
            (Hold::EndOfPoll, _) => 1 + read / 50,
            (_, 0) => read,
            _ => 0,
        }
    }

    fn carry(&mut self, world: &World, way: usize) {
        let link = [&world.there, &world.back][way];
        let (packets, seen, course) = (&mut self.packets, &mut self.seen, self.course);
        let ports: Vec<_> =
            self.pairs.iter().map(|(stream, _)| stream.local_addr().unwrap().port()).collect();
        self.ways[way].carry(link, course.verifies, &mut |bytes| {
            let port = client_port(course, way, bytes);
            let Some(n) = port.and_then(|port| ports.iter().position(|it| *it == port)) else {
                return 0;
            };
            packets[n].push(bytes.to_vec());
            seen[n][way] += 1;
            seen[n][way]
        });
    }

    fn outcome(self) -> Outcome {
        let statistics =
            self.pairs.iter().map(|(stream, _)| format!("{:?}", stream.statistics())).collect();
        Outcome { packets: self.packets, statistics }
    }
}

fn parsed(link: LinkKind, bytes: &[u8]) -> Option<Parsed> {
    let parsed = link.read(bytes, rxo_wire::parse, rxo_wire::parse_ip);
    parsed.ok()
}

/// Clears PSH in a TCP packet. The device completes the checksum, or has verified it.
fn clear_psh(link: LinkKind, bytes: &mut [u8]) {
    let tcp = parsed(link, bytes).filter(|it| matches!(it.transport, Transport::Tcp(_)));
    if let Some(flags) = tcp.and_then(|tcp| bytes.get_mut(tcp.at.transport as usize + 13)) {
        *flags &= !0x08;
    }
}

/// Returns the client's port in a packet; `None` if it is not IP.
fn client_port(course: Course, way: usize, bytes: &[u8]) -> Option<u16> {
    let key = parsed(course.link, bytes)?.key;
    Some(if way == 0 { key.source_port() } else { key.destination_port() })
}

pub(super) const PLAIN: Course = Course {
    link: LinkKind::RawIp,
    is_v6: false,
    sack: true,
    timestamps: true,
    verifies: true,
    lose_every: [0, 0],
    repeat_every: 0,
    hold: Hold::EndOfPoll,
    streams: 1,
    both_ways: false,
    bytes: 300_000,
};

const LOSSY: Course = Course { lose_every: [31, 0], ..PLAIN };

#[test]
fn a_bulk_sender_sends_the_same_packets_and_takes_no_frame_for_an_ack() {
    let (without, off) = PLAIN.run(On::Never);
    let (with, on) = PLAIN.run(On::Always);
    assert!(without == with);
    assert_eq!(off, FastCounters::default(), "off means off");
    assert!(on.consumed > 60, "{on:?}");
    assert_eq!(on.consumed, on.unseen, "the memory link looks in place");
    assert!(on.calls < on.consumed, "one call for the ACKs of a batch: {on:?}");
}

#[test]
fn acks_given_one_by_one_are_the_same_in_more_calls() {
    for course in [PLAIN, Course { sack: false, lose_every: [29, 0], repeat_every: 5, ..PLAIN }] {
        let (gathered, _) = course.run(On::Always);
        let (single, counters) = course.run(On::OneByOne);
        assert!(gathered == single);
        assert_eq!(counters.calls, counters.consumed, "{counters:?}");
    }
}

/// A hash of every packet with the fast path off, recorded in November 2026. Changes of what TCP sends change
/// these numbers; changes of the fast path must not.
#[test]
fn off_the_output_is_the_recorded_one() {
    let recorded = [PLAIN, LOSSY].map(|course| course.run(On::Never).0.recorded());
    assert_eq!(
        recorded,
        [(0x51ef_dfa5_4c9f_36a9, 320), (0x4abe_e552_b8d5_3a1c, 349)],
        "{recorded:#x?}"
    );
}

#[test]
fn switched_off_again_the_output_is_bit_identical() {
    for course in [PLAIN, LOSSY] {
        let (never, off) = course.run(On::Never);
        let (all, on) = course.run(On::Always);
        let (until, switched) = course.run(On::Until(6));
        assert_eq!((off.consumed, off.fallbacks()), (0, 0));
        assert!(never == until && never == all);
        assert_eq!(never.recorded(), until.recorded());
        let consumed = 1..on.consumed;
        assert!(consumed.contains(&switched.consumed), "{switched:?}, {on:?}");
        // The counters do not change once the fast path is off.
        let (_, earlier) = course.run_until(On::Until(6), 6);
        let looked = |it: &FastCounters| (it.consumed, it.fallbacks(), it.calls);
        assert_eq!(looked(&switched), looked(&earlier));
    }
}

/// The engine holds data of the peer beyond a poll. Later ACKs take the slow path, where they make the engine
/// deliver that data.
#[test]
fn an_ack_does_not_overtake_what_the_engine_holds() {
    for hold in HOLDS {
        let course = Course { hold, both_ways: true, lose_every: [37, 0], ..PLAIN };
        let (without, _) = course.run(On::Never);
        let (with, counters) = course.run(On::Always);
        assert!(counters.consumed > 20, "{hold:?}: {counters:?}");
        assert!(counters.fallback(FallbackReason::Order) > 0, "{hold:?}: {counters:?}");
        if course.is_the_same() {
            assert!(without == with, "{hold:?}");
        }
    }
}

#[test]
fn toggling_under_load_loses_nothing() {
    for course in [PLAIN, Course { lose_every: [23, 0], repeat_every: 5, ..PLAIN }] {
        let (without, _) = course.run(On::Never);
        let (toggled, counters) = course.run(On::Toggled);
        assert!(without == toggled);
        assert!(counters.consumed > 20, "{counters:?}");
    }
}

#[test]
fn duplicates_of_a_peer_without_sack_are_consumed_and_counted() {
    let course = Course { sack: false, lose_every: [29, 0], ..PLAIN };
    let (without, _) = course.run(On::Never);
    let (with, counters) = course.run(On::Always);
    assert!(without == with, "the same fast retransmissions");
    assert!(counters.duplicates > 5, "{counters:?}");
}

fn courses() -> impl Strategy<Value = Course> {
    let flags = prop::array::uniform6(any::<bool>());
    let losses = prop::array::uniform2(prop_oneof![Just(0_usize), 5_usize..80]);
    let repeats = prop_oneof![Just(0_usize), 1_usize..9];
    let hold = prop_oneof![Just(Hold::EndOfPoll), prop::sample::select(&HOLDS)];
    (flags, losses, repeats, hold, 1_usize..4, 20_000_usize..120_000).prop_map(
        |(
            [ethernet, is_v6, sack, timestamps, verifies, both_ways],
            lose_every,
            repeat_every,
            hold,
            streams,
            bytes,
        )| {
            let link = if ethernet { LinkKind::Ethernet } else { LinkKind::RawIp };
            Course {
                link,
                is_v6,
                sack,
                timestamps,
                verifies,
                lose_every,
                repeat_every,
                hold,
                streams,
                both_ways,
                bytes,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every packet and all statistics are equal: acknowledged bytes, windows, retransmissions.
    #[test]
    fn whatever_happens_to_packets_both_ways_send_the_same(course in courses()) {
        let (without, _) = course.run(On::Never);
        let (with, _) = course.run(On::Always);
        if !course.is_the_same() {
            // The transfer itself checks that all data was read in order.
            return Ok(());
        }
        prop_assert!(without.statistics == with.statistics, "{:#?}", (without.statistics, with.statistics));
        prop_assert!(without == with, "{course:?}");
    }
}

/// The policies that hold segments beyond a poll.
const HOLDS: [Hold; 3] =
    [Hold::EveryNthPoll(3), Hold::Within(Duration::from_micros(100)), Hold::EveryNPackets(5)];
const MOST_TURNS: usize = 200_000;
