//! Tests the sender on virtual time, against the simplest possible receiver.

use std::collections::VecDeque;
use std::time::Duration;

use super::model::{Model, Setup, ToSend};
use super::segment::{ACK, FIN, Header, RST, SYN};

const MSS: u16 = 1_012;
/// Payload of a segment with a timestamp, in bytes.
const PAYLOAD: u64 = 1_000;
const ISN: u32 = u32::MAX - 5_000;
const ONE_WAY: Duration = Duration::from_millis(10);
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// Both ends, and the network between them.
struct World {
    now: Duration,
    sender: Model,
    to_receiver: VecDeque<(Duration, ToSend)>,
    to_sender: VecDeque<(Duration, Header)>,
    receiver: Receiver,
    /// Returns true if the data segment with this number is lost. Numbers count sent segments.
    lost: fn(u64) -> bool,
    sent: u64,
}

/// Acknowledges after every `every` segments in order, and everything else at once.
struct Receiver {
    ack_every: u64,
    next: u64,
    /// Segments that arrived too early: start and end.
    early: Vec<(u64, u64)>,
    waiting: u64,
    ack_at: Option<Duration>,
    window: u16,
    end: Option<u64>,
    echo: u32,
}

impl World {
    fn new(ack_every: u64, limit_bytes: u64, lost: fn(u64) -> bool) -> Self {
        let setup =
            Setup { isn: ISN, mss: MSS, initial_segments: 10, limit_bytes: Some(limit_bytes) };
        let receiver = Receiver {
            ack_every,
            next: 0,
            early: Vec::new(),
            waiting: 0,
            ack_at: None,
            window: u16::MAX,
            end: None,
            echo: 0,
        };
        let (to_receiver, to_sender) = Default::default();
        let sender = Model::new(setup);
        Self { now: Duration::ZERO, sender, to_receiver, to_sender, receiver, lost, sent: 0 }
    }

    /// Runs until the sender is done, or a year has passed.
    fn run(&mut self) {
        while !self.sender.is_done() && self.step() {}
    }

    /// Processes everything that happens at the next instant.
    fn step(&mut self) -> bool {
        self.transmit();
        let next = [
            self.to_receiver.front().map(|(at, _)| *at),
            self.to_sender.front().map(|(at, _)| *at),
            self.sender.poll_at(),
            self.receiver.ack_at,
        ];
        let Some(now) = next.into_iter().flatten().min() else { return false };
        self.now = now.max(self.now);
        while let Some((_, segment)) = self.to_receiver.pop_front_if(|(at, _)| *at <= now) {
            let answer = self.receiver.take(&segment, now);
            self.answer(answer);
        }
        if self.receiver.ack_at.is_some_and(|at| at <= now) {
            let ack = self.receiver.acknowledge();
            self.answer(Some(ack));
        }
        while let Some((_, header)) = self.to_sender.pop_front_if(|(at, _)| *at <= now) {
            self.sender.on_segment(&header, now);
        }
        self.sender.on_timeout(now);
        now < Duration::from_secs(31_536_000)
    }

    fn transmit(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            let is_lost = segment.bytes > 0 && {
                self.sent += 1;
                (self.lost)(self.sent)
            };
            if !is_lost {
                self.to_receiver.push_back((self.now + ONE_WAY, segment));
            }
        }
    }

    fn answer(&mut self, header: Option<Header>) {
        let at = self.now + ONE_WAY;
        self.to_sender.extend(header.map(|header| (at, header)));
    }

    /// Returns the time at which the window first reached this many bytes.
    fn window_reached(self, bytes: u64) -> Option<Duration> {
        let record = self.sender.into_record();
        record.iter().find(|point| point.cwnd_bytes >= bytes).map(|point| point.at)
    }
}

impl Receiver {
    fn take(&mut self, segment: &ToSend, now: Duration) -> Option<Header> {
        let Header { flags, seq, timestamp, .. } = segment.header;
        self.echo = timestamp.map_or(0, |(value, _)| value);
        if flags & SYN != 0 {
            let syn_ack = Header { mss: Some(1_460), scale: Some(7), ..self.header(SYN | ACK) };
            return Some(Header { ack: ISN.wrapping_add(1), ..syn_ack });
        }
        assert_eq!(seq, ISN.wrapping_add(1).wrapping_add(segment.at as u32));
        let (from, to) = (segment.at, segment.at + segment.bytes as u64);
        if flags & FIN != 0 {
            self.end = Some(to);
        }
        let is_in_order = from <= self.next && to > self.next && self.early.is_empty();
        self.early.push((from, to));
        self.early.sort_unstable();
        for (from, to) in std::mem::take(&mut self.early) {
            match from <= self.next {
                true => self.next = self.next.max(to),
                false => self.early.push((from, to)),
            }
        }
        self.waiting += 1;
        if is_in_order && self.waiting < self.ack_every && self.end != Some(self.next) {
            self.ack_at.get_or_insert(now + DELAYED_ACK);
            return None;
        }
        (segment.bytes > 0 || flags & FIN != 0).then(|| self.acknowledge())
    }

    fn acknowledge(&mut self) -> Header {
        (self.waiting, self.ack_at) = (0, None);
        let end = u64::from(self.end == Some(self.next));
        let ack = ISN.wrapping_add(1).wrapping_add((self.next + end) as u32);
        Header { ack, ..self.header(ACK) }
    }

    fn header(&self, flags: u8) -> Header {
        let (window, timestamp) = (self.window, Some((1, self.echo)));
        Header { seq: 77, flags, window, timestamp, ..Header::default() }
    }
}

fn nothing(_: u64) -> bool {
    false
}

#[test]
fn a_stream_arrives_whole_across_the_wrap_of_sequence_numbers() {
    let mut world = World::new(2, 10_000_500, nothing);
    world.run();
    assert!(world.sender.is_done());
    assert_eq!((world.receiver.next, world.sender.sent_bytes()), (10_000_500, 10_000_500));
    let counters = world.sender.counters();
    assert_eq!((counters.segments, counters.retransmissions, counters.timeouts), (10_001, 0, 0));
}

#[test]
fn the_window_grows_by_the_acks_that_come_and_not_by_what_they_cover() {
    let reached = |ack_every| {
        let mut world = World::new(ack_every, 30_000_000, nothing);
        world.run();
        world.window_reached(400 * PAYLOAD).unwrap().as_millis()
    };
    let (each, second, twentieth) = (reached(1), reached(2), reached(20));
    // The handshake, and then 40-fold: 2^5.3, 1.5^9.1, 1.05^75 round trips of 20 ms.
    assert!((120..=160).contains(&each), "{each}");
    assert!((200..=260).contains(&second), "{second}");
    assert!(twentieth > 3 * second, "{twentieth}");
}

#[test]
fn three_duplicates_bring_one_retransmission_and_half_the_window() {
    let mut world = World::new(1, 3_000_000, |number| number == 500);
    world.run();
    let counters = world.sender.counters();
    assert_eq!(world.receiver.next, 3_000_000);
    assert_eq!((counters.retransmissions, counters.timeouts), (1, 0));
    assert!(counters.duplicate_acks >= 3, "{counters:?}");
    let record = world.sender.into_record();
    let falls = record.windows(2).any(|pair| pair[1].cwnd_bytes < pair[0].cwnd_bytes * 2 / 3);
    assert!(falls, "the window was not halved");
}

#[test]
fn several_losses_of_one_window_are_mended_without_a_timeout() {
    let mut world =
        World::new(2, 3_000_000, |number| (400..430).contains(&number) && number % 3 == 0);
    world.run();
    let counters = world.sender.counters();
    assert_eq!(world.receiver.next, 3_000_000);
    assert_eq!((counters.retransmissions, counters.timeouts), (10, 0));
}

#[test]
fn a_lost_tail_is_sent_again_after_a_timeout() {
    let mut world = World::new(1, 100_000, |number| (99..=100).contains(&number));
    world.run();
    assert_eq!(world.receiver.next, 100_000);
    assert!(world.sender.is_done());
    let counters = world.sender.counters();
    assert_eq!((counters.retransmissions, counters.timeouts), (2, 1));
}

#[test]
fn a_lost_syn_is_sent_again() {
    let mut world = World::new(2, 10_000, nothing);
    world.transmit();
    world.to_receiver.clear();
    world.run();
    assert!(world.sender.is_done() && world.now > Duration::from_secs(1));
}

#[test]
fn a_closed_window_is_asked_and_its_opening_is_seen() {
    let mut world = World::new(1, 1_000_000, nothing);
    while world.receiver.next < 50_000 {
        world.step();
    }
    world.receiver.window = 0;
    while world.now < Duration::from_secs(5) {
        world.step();
    }
    // The receiver is probed from time to time, one segment at a time.
    assert!(world.receiver.next < 300_000, "{}", world.receiver.next);
    world.receiver.window = u16::MAX;
    world.run();
    assert_eq!(world.receiver.next, 1_000_000);
}

#[test]
fn a_sender_told_to_stop_says_goodbye_behind_what_it_sent() {
    let mut world = World::new(2, u64::MAX, nothing);
    while world.receiver.next < 1_000_000 {
        world.step();
    }
    world.sender.stop();
    world.run();
    assert!(world.sender.is_done());
    assert_eq!(world.receiver.next, world.sender.sent_bytes());
}

#[test]
fn a_reset_is_told() {
    let mut world = World::new(2, 1_000_000, nothing);
    while world.receiver.next < 10_000 {
        world.step();
    }
    world.sender.on_segment(&Header { flags: RST, ..Header::default() }, world.now);
    assert!(world.sender.is_reset() && world.sender.poll_transmit(world.now).is_none());
}

/// Pseudo-random losses, from mild to losing whole windows.
#[test]
fn whatever_is_lost_arrives_in_the_end() {
    let rules: [fn(u64) -> bool; 4] = [
        |number| mixed(number).is_multiple_of(100),
        |number| mixed(number).is_multiple_of(10),
        |number| mixed(number).is_multiple_of(3),
        |number| number / 40 % 5 == 3,
    ];
    for (index, rule) in rules.into_iter().enumerate() {
        for ack_every in [1, 2, 20] {
            let mut world = World::new(ack_every, 1_000_000, rule);
            world.run();
            assert!(world.sender.is_done(), "rule {index}, an ACK for {ack_every}");
            assert_eq!(world.receiver.next, 1_000_000);
        }
    }
}

fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}
