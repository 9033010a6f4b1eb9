//! Receivers of a cast: a naive model of the sender, and hosts that have joined its group, on virtual time.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rxo_device::MemoryLink;
use rxo_frame::{Frame, Instant};
use rxo_host::{Host, HostConfig, TcpStream};
use rxo_tcp::AckPolicy;
use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::{SeqNumber, TcpFlags, TcpSegment, Transport, parse_ip};

use crate::world::{MemoryHost, drain, options, pattern};

const SENDER: &str = "10.0.0.9:7000";
const GROUP: &str = "232.1.1.1:7001";
const ISS: SeqNumber = SeqNumber(u32::MAX - 20_000);
const MSS: usize = 1_000;
const CLOCK: u32 = 77_000_000;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A receiver: a host on its own link, and the sender's state for it.
struct Receiver {
    host: MemoryHost,
    there: MemoryLink,
    back: MemoryLink,
    stream: TcpStream,
    ours: Option<SocketAddr>,
    /// The number that the sender expects next, and the bytes acknowledged, counted from the first byte of
    /// data.
    rcv_nxt: SeqNumber,
    acked: usize,
    /// The number of segments and of IGMP reports that the receiver has sent.
    segments: usize,
    reports: usize,
    is_reset: bool,
    got: Vec<u8>,
    is_done: bool,
    /// The error of the last read, if it failed.
    failure: Option<ErrorKind>,
}

impl Receiver {
    fn new(number: u8, change: impl Fn(&mut HostConfig)) -> Self {
        let (there, back) = (MemoryLink::new(options()), MemoryLink::new(options()));
        let ip = format!("10.0.0.{number}/24").parse().unwrap();
        let mut config = HostConfig::new(vec![ip], [u64::from(number), 5]);
        change(&mut config);
        let host = Host::new(there.source(), back.sink(), config).unwrap();
        let stream = host.handle().join_nonblocking(address(SENDER), address(GROUP)).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self {
            host,
            there,
            back,
            stream,
            ours: None,
            rcv_nxt: SeqNumber(0),
            acked: 0,
            segments: 0,
            reports: 0,
            is_reset: false,
            got: Vec::new(),
            is_done: false,
            failure: None,
        }
    }

    /// Runs the host, processes its packets, and reads the application's data.
    fn turn(&mut self, now: Instant) {
        while !self.host.turn(now).unwrap().is_idle() {}
        for frame in self.back.take_all() {
            let parsed = parse_ip(&frame.bytes).unwrap();
            match parsed.transport {
                Transport::Tcp(tcp) => {
                    let from = SocketAddr::new(parsed.key.source(), parsed.key.source_port());
                    self.hear(from, tcp, now);
                }
                Transport::Other(2) => self.reports += 1,
                other => panic!("{other:?}"),
            }
        }
        match drain(&self.stream) {
            Ok((bytes, is_done)) => {
                self.got.extend(bytes);
                self.is_done |= is_done;
            }
            Err(error) => self.failure = Some(error.kind()),
        }
    }

    fn hear(&mut self, from: SocketAddr, tcp: TcpSegment, now: Instant) {
        self.segments += 1;
        self.is_reset |= tcp.flags.contains(TcpFlags::RST);
        if tcp.flags.contains(TcpFlags::SYN) {
            (self.ours, self.rcv_nxt) = (Some(from), tcp.seq + 1);
            let answer = Sent { seq: ISS, flags: TcpFlags::SYN | TcpFlags::ACK, ..self.own() };
            self.push(&answer, now);
            self.turn(now);
        } else {
            self.acked = self.acked.max((tcp.ack - (ISS + 1)).max(0) as usize);
        }
    }

    /// Returns a segment of this receiver's own connection.
    fn own(&self) -> Sent<'static> {
        Sent { to: self.ours.unwrap_or(address(GROUP)), ack: self.rcv_nxt, ..to_group(0, &[]) }
    }

    fn push(&mut self, sent: &Sent<'_>, now: Instant) {
        self.there.set_now(now);
        self.there.push(&Frame::new(sent.packet(now), now));
    }

    fn receives(&mut self, sent: &Sent<'_>, now: Instant) {
        self.push(sent, now);
        self.turn(now);
    }
}

/// A segment sent by the sender or by a forger.
#[derive(Clone, Copy)]
struct Sent<'a> {
    from: SocketAddr,
    to: SocketAddr,
    seq: SeqNumber,
    ack: SeqNumber,
    flags: TcpFlags,
    /// The number of milliseconds that is added to the sender's timestamp.
    ahead: u32,
    text: &'a [u8],
}

/// Returns a segment to the group with `text` at offset `at` of the stream.
fn to_group(at: usize, text: &[u8]) -> Sent<'_> {
    Sent {
        from: address(SENDER),
        to: address(GROUP),
        seq: ISS + 1 + at as u32,
        ack: SeqNumber(0xdead_beef),
        flags: TcpFlags::ACK,
        ahead: 0,
        text,
    }
}

impl Sent<'_> {
    fn packet(&self, now: Instant) -> Vec<u8> {
        let clock = (CLOCK + (now.as_nanos() / 1_000_000) as u32 + self.ahead).to_be_bytes();
        let mut options = vec![1, 1, 8, 10, clock[0], clock[1], clock[2], clock[3], 9, 9, 9, 9];
        if self.flags.contains(TcpFlags::SYN) {
            options.extend([2, 4, 3, 232, 4, 2, 1, 1, 3, 3, 7, 0]);
        }
        let header = TcpHeader {
            source_port: self.from.port(),
            destination_port: self.to.port(),
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: 500,
            options: &options,
            ..TcpHeader::default()
        };
        let v4 = |address: SocketAddr| address.ip().to_string().parse::<Ipv4Addr>().unwrap();
        let ip = Ipv4Header {
            source: v4(self.from),
            destination: v4(self.to),
            protocol: 6,
            payload_bytes: header.bytes() + self.text.len(),
            ..Ipv4Header::default()
        };
        let mut packet = vec![0; ip.bytes() + ip.payload_bytes];
        let segment = ip.write(&mut packet).unwrap();
        header.write(segment).unwrap().copy_from_slice(self.text);
        write_tcp_checksum(segment, ip.pseudo_header(), Summer::portable()).unwrap();
        packet
    }
}

fn start() -> Instant {
    Instant::from_micros(1_000_000)
}

/// Returns a receiver with an established connection.
fn opened() -> Receiver {
    opened_with(|_| {})
}

fn opened_with(change: impl Fn(&mut HostConfig)) -> Receiver {
    let mut receiver = Receiver::new(1, change);
    receiver.turn(start());
    assert!(receiver.stream.is_connected().unwrap());
    receiver
}

#[test]
fn a_receiver_reports_its_group_and_gets_the_text() {
    let mut receiver = opened();
    assert_eq!(receiver.reports, 1);
    let text = pattern(4 * MSS);
    for at in (0..text.len()).step_by(MSS) {
        receiver.receives(&to_group(at, &text[at..at + MSS]), start());
    }
    let fin = Sent { flags: TcpFlags::FIN | TcpFlags::ACK, ..to_group(text.len(), &[]) };
    receiver.receives(&fin, start());
    assert_eq!((receiver.got, receiver.is_done), (text.clone(), true));
    assert_eq!(receiver.acked, text.len() + 1);
    assert_eq!(receiver.stream.statistics().group.taken, 5);
}

/// The segments of one round become one aggregate, and one arrival.
#[test]
fn text_to_the_group_is_coalesced() {
    let mut receiver = opened();
    let text = pattern(32 * MSS);
    let before = receiver.host.counters();
    for at in (0..text.len()).step_by(MSS) {
        receiver.push(&to_group(at, &text[at..at + MSS]), start());
    }
    receiver.turn(start());
    let after = receiver.host.counters();
    assert_eq!(receiver.got, text);
    assert_eq!(after.deliveries - before.deliveries, 1, "32 segments");
}

/// Each row is a segment that a host can forge without seeing the group's traffic.
#[test]
fn forgeries_change_nothing_and_get_no_answer() {
    let text = pattern(MSS);
    let right = to_group(0, &text);
    let rows = [
        ("another source", Sent { from: address("10.0.0.8:7000"), ..right }),
        ("another source port", Sent { from: address("10.0.0.9:7002"), ..right }),
        ("another port of the group", Sent { to: address("232.1.1.1:7000"), ..right }),
        ("another group", Sent { to: address("232.1.1.2:7001"), ..right }),
        ("a reset", Sent { flags: TcpFlags::RST, ..to_group(0, &[]) }),
        ("a SYN", Sent { flags: TcpFlags::SYN, ..right }),
        ("a clock that is ahead", Sent { ahead: 20_000, ..right }),
        ("a clock that is behind", Sent { ahead: u32::MAX / 2, ..right }),
    ];
    for (name, forged) in rows {
        let mut receiver = opened();
        let (before, segments) = (receiver.stream.statistics(), receiver.segments);
        receiver.receives(&forged, start());
        assert_eq!((receiver.segments, receiver.got.len()), (segments, 0), "{name}");
        let after = receiver.stream.statistics();
        assert_eq!(
            (after.rcv_nxt, after.rcv_wnd, after.snd_una),
            (before.rcv_nxt, before.rcv_wnd, before.snd_una),
            "{name}"
        );
        receiver.receives(&right, start());
        assert_eq!(receiver.got, text, "after {name} the right one is taken");
    }
}

/// Sequence numbers outside the window cause at most ten answers in five seconds.
#[test]
fn a_flood_of_old_and_future_text_gets_ten_answers() {
    let mut receiver = opened();
    let text = pattern(MSS);
    receiver.receives(&to_group(0, &text), start());
    let before = receiver.segments;
    for number in 0..2_000_u32 {
        let seq = ISS + 1_u32.wrapping_sub(number * 1_000_000) + 900_000_000;
        receiver.receives(&Sent { seq, ..to_group(0, &text) }, start());
    }
    assert!(receiver.segments - before <= 10, "{}", receiver.segments - before);
    assert_eq!(receiver.got.len(), MSS);
}

#[test]
fn who_is_done_leaves_the_group() {
    let mut receiver = opened();
    receiver.stream.abort();
    receiver.turn(start());
    assert!(receiver.is_reset);
    assert_eq!(receiver.reports, 2, "joined, left");
    let segments = receiver.segments;
    receiver.receives(&to_group(0, &pattern(MSS)), start());
    assert_eq!(receiver.segments, segments, "no reset for what comes to the group");
    assert_eq!(receiver.host.counters().link.refused.other_address, 1);
}

#[test]
fn what_is_no_group_is_refused() {
    let receiver = opened();
    let handle = receiver.host.handle();
    let said = |group: &str| {
        handle
            .join_nonblocking(address(SENDER), address(group))
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(said("10.0.0.5:1").starts_with("10.0.0.5 is no group that can be joined"));
    assert!(said("[ff3e::8000:1]:1").starts_with("10.0.0.9 cannot send to ff3e::8000:1"));
}

/// If two connections had the same group flow, segments to the group would be ambiguous.
#[test]
fn a_group_has_one_connection_for_each_sender() {
    let mut receiver = opened();
    let second = receiver.host.handle().join_nonblocking(address(SENDER), address(GROUP)).unwrap();
    receiver.turn(start());
    assert!(second.is_connected().is_err());
    receiver.receives(&to_group(0, &pattern(MSS)), start());
    assert_eq!(receiver.got.len(), MSS, "the first goes on");
}

/// Five receivers lose different segments, and get other segments twice or reordered. Each receives the whole
/// file, repaired by unicast according to its ACKs.
#[test]
fn every_receiver_gets_the_file() {
    let text = pattern(400 * MSS);
    let mut chance = Chance(77);
    let mut receivers: Vec<Receiver> = (1..=5)
        .map(|number| {
            let acks = AckPolicy::Spread { segments: 16, offset: u16::from(number) };
            Receiver::new(number, |config| config.tcp.acks = acks)
        })
        .collect();
    let mut now = start();
    receivers.iter_mut().for_each(|receiver| receiver.turn(now));
    let mut sent = 0;
    for _round in 0..5_000 {
        now = now + Duration::from_millis(1);
        let least = receivers.iter().map(|receiver| receiver.acked).min().unwrap();
        let until = text.len().min(least + 40 * MSS);
        let flight: Vec<usize> = (sent..until).step_by(MSS).collect();
        sent = until;
        for receiver in &mut receivers {
            let mut order = flight.clone();
            if chance.one_of(3) {
                order.reverse();
            }
            for at in order {
                let copies = if chance.one_of(50) { 0 } else { 1 + usize::from(chance.one_of(30)) };
                for _copy in 0..copies {
                    receiver.push(&to_group(at, &text[at..at + MSS]), now);
                }
            }
            receiver.turn(now);
            let at = receiver.acked;
            if at < sent && flight.is_empty() {
                let repair = &text[at..sent.min(at + MSS)];
                let own = Sent {
                    to: receiver.ours.unwrap(),
                    ack: receiver.rcv_nxt,
                    ..to_group(at, repair)
                };
                receiver.receives(&own, now);
            }
        }
    }
    for receiver in &receivers {
        assert_eq!(receiver.acked, text.len());
        assert!(receiver.got == text, "the file");
        assert!(!receiver.is_reset);
    }
}

/// A pseudorandom number generator (xorshift; Marsaglia 2003).
struct Chance(u32);

impl Chance {
    /// Returns `true` with a probability of one in `of`.
    fn one_of(&mut self, of: u32) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0.is_multiple_of(of)
    }
}

/// When the sender is gone, the connection fails, and a read returns the error.
#[test]
fn without_a_sender_the_connection_fails() {
    let mut receiver = opened();
    receiver.receives(&to_group(0, &pattern(MSS)), start());
    let reset = Sent { seq: ISS + 1 + MSS as u32, flags: TcpFlags::RST, ..receiver.own() };
    receiver.receives(&reset, start());
    assert_eq!(receiver.failure, Some(ErrorKind::ConnectionReset));
}
