//! Two runs of one transfer, with the fast path and without: every packet that leaves is the same.

use std::time::Duration;

use proptest::prelude::*;
use rxo_device::{MemoryLink, MemoryOptions};
use rxo_frame::{ChecksumStatus, Frame, LinkKind};
use rxo_host::{FastCounters, FastModule, FastModules, FastPath, HostConfig, TcpStream};
use rxo_tcp::AckPolicy;

use crate::world::{World, drain, fill, options, pattern};

/// A transfer, and what happens to its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) link: LinkKind,
    pub(super) is_v6: bool,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// Whether the device verifies checksums.
    pub(super) verifies: bool,
    /// One packet of so many is lost, each way; 0 for none.
    pub(super) lose_every: [usize; 2],
    /// One ACK of so many is duplicated; 0 for none.
    pub(super) repeat_every: usize,
    /// Connections that send at once.
    pub(super) streams: usize,
    /// Whether the receiver sends text, too.
    pub(super) both_ways: bool,
    pub(super) bytes: usize,
}

/// What left each host, in order, and what the sender's fast path did.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    /// By local port of the client.
    packets: Vec<Vec<Vec<u8>>>,
    statistics: Vec<String>,
}

/// When the fast path of both hosts is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    Never,
    Always,
    /// Turned on and off again before anything is sent.
    Before,
    /// Toggled every few turns.
    Toggled,
    /// On, with a call for each ACK.
    OneByOne,
}

/// The packets of one link on their way: lost, repeated, recorded.
struct Way {
    lose_every: usize,
    repeat_every: usize,
}

impl Way {
    /// `record` returns how many packets of a connection there have been.
    fn carry(&self, link: &MemoryLink, verifies: bool, record: &mut impl FnMut(&[u8]) -> usize) {
        for sent in link.take_all() {
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
            let is_on = matches!(on, On::Always | On::OneByOne);
            let modules = if is_on { FastModules::ON } else { FastModules::OFF };
            let one_by_one = on == On::OneByOne;
            config.fast_path = FastPath { modules, one_by_one, ..FastPath::default() };
        })
    }

    /// Runs it. Returns what left, and the counters of the client's fast path.
    pub(super) fn run(self, on: On) -> (Outcome, FastCounters) {
        let mut world = self.world(on);
        if on == On::Before {
            world.at_client().fast_path().set(FastModule::PureAck, true);
            world.at_client().fast_path().set(FastModule::PureAck, false);
        }
        let address = if self.is_v6 { "[fd00::2]:80" } else { "10.0.0.2:80" };
        let listener = world.at_server().listen(address.parse().unwrap(), 16).unwrap();
        listener.set_nonblocking(true).unwrap();
        let pairs: Vec<_> = (0..self.streams).map(|_| world.connected(&listener)).collect();
        let mut transfer = Transfer::new(self, &pairs);
        for turn in 0..200_000 {
            if on == On::Toggled && turn % 7 == 0 {
                let switches = world.at_client().fast_path();
                switches.set(FastModule::PureAck, !switches.is_on(FastModule::PureAck));
            }
            if transfer.step(&mut world) {
                let counters = world.client.counters().fast;
                return (transfer.outcome(), counters);
            }
        }
        panic!("{self:?} does not end: {:?}", transfer.read)
    }
}

/// A transfer that is under way.
struct Transfer<'a> {
    course: Course,
    pairs: &'a [(TcpStream, TcpStream)],
    data: Vec<u8>,
    sent: Vec<usize>,
    read: Vec<usize>,
    ways: [Way; 2],
    packets: Vec<Vec<Vec<u8>>>,
    /// Packets of each connection so far, each way.
    seen: Vec<[usize; 2]>,
}

impl<'a> Transfer<'a> {
    fn new(course: Course, pairs: &'a [(TcpStream, TcpStream)]) -> Self {
        let way = |lose_every, repeat_every| Way { lose_every, repeat_every };
        let [there, back] = course.lose_every;
        Self {
            course,
            pairs,
            data: pattern(course.bytes),
            sent: vec![0; pairs.len()],
            read: vec![0; pairs.len()],
            ways: [way(there, 0), way(back, course.repeat_every)],
            packets: vec![Vec::new(); pairs.len()],
            seen: vec![[0; 2]; pairs.len()],
        }
    }

    /// One round trip. Returns whether all has arrived.
    fn step(&mut self, world: &mut World) -> bool {
        for (n, (stream, accepted)) in self.pairs.iter().enumerate() {
            self.sent[n] += fill(stream, &self.data[self.sent[n]..]);
            let read = drain(accepted).unwrap().0;
            assert!(self.data[self.read[n]..].starts_with(&read), "text in order");
            self.read[n] += read.len();
            if self.course.both_ways && !read.is_empty() {
                fill(accepted, &read[..1 + read.len() / 50]);
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

/// The client's port in a packet; `None` if it is not TCP.
fn client_port(course: Course, way: usize, bytes: &[u8]) -> Option<u16> {
    let parsed = match course.link {
        LinkKind::Ethernet => rxo_wire::parse(bytes),
        LinkKind::RawIp => rxo_wire::parse_ip(bytes),
    };
    let key = parsed.ok()?.key;
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
    streams: 1,
    both_ways: false,
    bytes: 300_000,
};

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

#[test]
fn switched_off_again_the_output_is_bit_identical() {
    for course in [PLAIN, Course { lose_every: [31, 0], ..PLAIN }] {
        let (never, off) = course.run(On::Never);
        let (before, switched) = course.run(On::Before);
        assert!(never == before);
        assert_eq!((off.consumed, switched.consumed, switched.fallbacks()), (0, 0, 0));
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
    (flags, losses, repeats, 1_usize..4, 20_000_usize..120_000).prop_map(
        |(
            [ethernet, is_v6, sack, timestamps, verifies, both_ways],
            lose_every,
            repeat_every,
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
                streams,
                both_ways,
                bytes,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same bytes acknowledged, the same windows, the same retransmissions: every packet, and all statistics.
    #[test]
    fn whatever_happens_to_packets_both_ways_send_the_same(course in courses()) {
        let (without, _) = course.run(On::Never);
        let (with, _) = course.run(On::Always);
        prop_assert!(without.statistics == with.statistics, "{:#?}", (without.statistics, with.statistics));
        prop_assert!(without == with, "{course:?}");
    }
}
