//! The part that the property test and the fuzz target share: any bytes become frames for two hosts, one of
//! which has the fast path on.
//!
//! Both hosts have the same connections and receive the same frames, in the same batches, at the same times.
//! The test requires that nothing panics, and that after each batch both hosts have sent the same packets on
//! each connection and report the same statistics. With some settings a batch arrives while an application
//! holds the lock of a connection, in two rounds, so that ACKs wait in its ring and segments in its backlog.
//! With SACK, such batches are small enough that nothing in a ring is overwritten; `tests/host/fast/held.rs`
//! tests overwriting.

use std::net::IpAddr;
use std::time::Duration;

use rxo_coalesce::{Hold, PureAckRule};
use rxo_device::{MemoryLink, MemoryOptions, MemorySink, MemorySource};
use rxo_frame::{ChecksumStatus, Frame, Instant, LinkKind};
use rxo_host::{FallbackReason, FastModules, Host, HostConfig, IpCidr, TcpListener, TcpStream};
use rxo_tcp::AckPolicy;
use rxo_wire::checksum::ipv4_header_checksum;
use rxo_wire::{parse, parse_ip};

type MemoryHost = Host<MemorySource, MemorySink>;

/// The events that a script has caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Number of batches that both hosts processed.
    pub(crate) sequences: u64,
    /// Number of ACKs that the fast path consumed.
    pub(crate) consumed: u64,
    /// The number of calls that passed consumed ACKs to connections.
    pub(crate) calls: u64,
    /// Number of ACKs that waited in a ring.
    pub(crate) waited: u64,
    /// Number of frames that fell back because of their order or a backlog, and of ACKs that found a ring
    /// full.
    pub(crate) behind: u64,
}

/// Runs the script `data`. Its first byte selects the settings.
///
/// # Panics
/// If the two hosts differ.
pub(crate) fn run(data: &[u8]) -> Outcome {
    let Some((settings, script)) = data.split_first() else { return Outcome::default() };
    let mut twins = Twins::new(Settings(*settings));
    let mut script = Script(script);
    while let Some(step) = script.byte() {
        twins.step(step, &mut script);
    }
    twins.turn();
    twins.outcome()
}

/// The settings of a run, one bit each.
#[derive(Clone, Copy)]
struct Settings(u8);

impl Settings {
    const fn has(self, bit: u8) -> bool {
        self.0 & bit == bit
    }

    const fn link(self) -> LinkKind {
        if self.has(ETHERNET) { LinkKind::Ethernet } else { LinkKind::RawIp }
    }

    /// The offset of the IP header.
    const fn network(self) -> usize {
        if self.has(ETHERNET) { 14 } else { 0 }
    }

    /// The offset of the TCP header.
    const fn tcp(self) -> usize {
        self.network() + if self.has(IPV6) { 40 } else { 20 }
    }

    /// The length of a frame without data.
    const fn end(self) -> usize {
        self.tcp() + if self.has(TIMESTAMPS) { 32 } else { 20 }
    }

    /// Returns the address of the host or of its peer.
    fn address(self, host: u8) -> IpAddr {
        match self.has(IPV6) {
            true => [0xfd00, 0, 0, 0, 0, 0, 0, u16::from(host)].into(),
            false => [10, 0, 0, host].into(),
        }
    }

    const fn most_frames(self) -> usize {
        // The two halves of a batch must fit into a ring; without SACK nothing in it may be overwritten
        // anyway.
        if self.has(LOCKED) && !self.has(NO_SACK) { 8 } else { 24 }
    }

    /// Corrects the length fields of `frame`, and the checksum of an IPv4 header without options, if these
    /// fields exist.
    fn fix(self, frame: &mut [u8]) {
        let bytes = frame.len();
        let Some(packet) = frame.get_mut(self.network()..) else { return };
        let at = if self.has(IPV6) { 4 } else { 2 };
        let length = (bytes - self.network()).saturating_sub(if self.has(IPV6) { 40 } else { 0 });
        if let Some(field) = packet.get_mut(at..at + 2) {
            field.copy_from_slice(&(length as u16).to_be_bytes());
        }
        self.fix_sum(frame);
    }

    /// Corrects the checksum of the IPv4 header, if there is one without options.
    fn fix_sum(self, frame: &mut [u8]) {
        let packet = frame.get_mut(self.network()..).unwrap_or_default();
        if packet.len() >= 20 && !self.has(IPV6) {
            packet[10..12].fill(0);
            let checksum = ipv4_header_checksum(&packet[..20]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// The part of the script that was not read yet.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn value(&mut self) -> u8 {
        self.byte().unwrap_or_default()
    }

    fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// One of the two hosts.
struct End {
    host: MemoryHost,
    to: MemoryLink,
    from: MemoryLink,
    streams: Vec<TcpStream>,
}

/// The way in which a batch is passed to a host.
#[derive(Clone, Copy)]
struct Turn {
    /// The connection whose lock an application holds while the batch arrives, if it has data to read.
    locks: Option<usize>,
    /// `true` if applications read all data after the batch.
    reads: bool,
}

impl End {
    /// Passes a batch to the host.
    fn take(&mut self, batch: &[(Vec<u8>, ChecksumStatus)], turn: Turn, now: Instant) {
        let Self { host, to, streams, .. } = self;
        let mut give = |batch: &[(Vec<u8>, ChecksumStatus)]| {
            for (bytes, checksum) in batch {
                to.push(&Frame { checksum: *checksum, ..Frame::new(&bytes[..], now) });
            }
            host.turn(now).expect("a link that is there");
        };
        let mut is_given = false;
        if let Some(stream) = turn.locks.and_then(|which| streams.get(which)) {
            let (first, second) = batch.split_at(batch.len() / 2);
            // Without data, and on a closed connection, the closure is not called.
            _ = stream.read_in_place(|_| {
                give(first);
                give(second);
                is_given = true;
                0
            });
        }
        // Waiting segments were processed when the lock was released; now the host serves the connection.
        give(if is_given { &[] } else { batch });
        if turn.reads {
            streams.iter_mut().for_each(read_all);
        }
    }
}

/// Both hosts, the one with the fast path first, and the frames of the next batch.
struct Twins {
    settings: Settings,
    ends: [End; 2],
    /// A pure ACK of the peer for each connection.
    templates: Vec<Vec<u8>>,
    batch: Vec<(Vec<u8>, ChecksumStatus)>,
    now: Instant,
    sequences: u64,
}

impl Twins {
    fn new(settings: Settings) -> Self {
        let [(fast, templates), (slow, _)] =
            [FastModules::PURE_ACK, FastModules::OFF].map(|modules| open(settings, modules));
        let now = Instant::from_micros(2_000_000);
        Self { settings, ends: [fast, slow], templates, batch: Vec::new(), now, sequences: 0 }
    }

    fn step(&mut self, step: u8, script: &mut Script<'_>) {
        let which = usize::from(step >> 3) % CONNECTIONS;
        match step & 7 {
            0 => self.turn(),
            1 => self.ack(which, script),
            2 => self.changed(which, script),
            3 => self.text(which, script),
            4 => {
                let bytes = usize::from(script.value()) % 100;
                self.batch.push((script.take(bytes).to_vec(), ChecksumStatus::Unknown));
            }
            5 => self.now = self.now + Duration::from_millis(u64::from(script.value())),
            6 => self.write(which, script.value()),
            _ => self.toggle(script.value()),
        }
        if self.batch.len() == self.settings.most_frames() {
            self.turn();
        }
    }

    /// Adds an ACK of a part of the sent data, perhaps of more, with any window.
    fn ack(&mut self, which: usize, script: &mut Script<'_>) {
        let (part, window) = (script.value(), script.value());
        let seen = self.ends[0].streams[which].statistics();
        let sent = (seen.snd_nxt - seen.snd_una).unsigned_abs();
        // 255 acknowledges everything; 254 acknowledges one byte too many.
        let acked =
            (u64::from(sent) * u64::from(part)).div_ceil(255) as u32 + u32::from(part == 254);
        let mut packet = self.packet(which);
        let tcp = &mut packet[self.settings.tcp()..];
        tcp[8..12].copy_from_slice(&(seen.snd_una + acked).0.to_be_bytes());
        tcp[4..8].copy_from_slice(&seen.rcv_nxt.0.to_be_bytes());
        tcp[14..16].copy_from_slice(&(u16::from(window) << 4).to_be_bytes());
        if self.settings.has(ETHERNET | PADDED) {
            packet.resize(packet.len().max(60), window);
        }
        self.batch.push((packet, ChecksumStatus::Verified));
    }

    /// The template of a connection, with the current timestamp of the peer.
    fn packet(&self, which: usize) -> Vec<u8> {
        let mut packet = self.templates[which].clone();
        let value = self.settings.tcp() + 24;
        if let Some(value) = packet.get_mut(value..value + 4) {
            let at_first = u32::from_be_bytes([value[0], value[1], value[2], value[3]]);
            let millis = (self.now.since(OPENED_AT).as_millis()) as u32;
            value.copy_from_slice(&at_first.wrapping_add(millis).to_be_bytes());
        }
        packet
    }

    /// Adds the last frame, or an ACK, with some bytes changed; in most cases corrects the checksum of the
    /// IPv4 header.
    fn changed(&mut self, which: usize, script: &mut Script<'_>) {
        let template = &self.templates[which];
        let mut packet = self.batch.last().map_or(template, |(packet, _)| packet).clone();
        for _ in 0..1 + script.value() % 3 {
            let (at, value) = (usize::from(script.value()), script.value());
            let length = packet.len();
            if let Some(byte) = packet.get_mut(at % length.max(1)) {
                *byte ^= value;
            }
        }
        if !script.value().is_multiple_of(4) {
            self.settings.fix_sum(&mut packet);
        }
        let checksum = match script.value() % 4 {
            0 => ChecksumStatus::Unknown,
            _ => ChecksumStatus::Verified,
        };
        self.batch.push((packet, checksum));
    }

    /// Adds a segment with the next data of the peer, or with older data.
    fn text(&mut self, which: usize, script: &mut Script<'_>) {
        let (bytes, back) = (1 + usize::from(script.value()), script.value());
        let seen = self.ends[0].streams[which].statistics();
        let mut packet = self.packet(which);
        let seq = seen.rcv_nxt.0.wrapping_sub(u32::from(back % 4) * 100);
        let tcp = &mut packet[self.settings.tcp()..];
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&seen.snd_una.0.to_be_bytes());
        packet.resize(packet.len() + bytes, back);
        self.settings.fix(&mut packet);
        self.batch.push((packet, ChecksumStatus::Verified));
    }

    fn write(&mut self, which: usize, blocks: u8) {
        use std::io::Write;
        let text = vec![blocks; usize::from(blocks) * 64];
        let written = self.ends.each_mut().map(|end| {
            let outcome = end.streams[which].write(&text);
            outcome.map_err(|error| error.kind())
        });
        assert_eq!(written[0], written[1]);
    }

    fn toggle(&self, value: u8) {
        let host = self.ends[0].host.handle();
        let modules = [FastModules::PURE_ACK, FastModules::SYN_FLOOD, FastModules::ACCOUNTING];
        let (module, on) = (modules[usize::from(value) % 3], host.fast_path());
        let is_on = value & 0x10 != 0 || module == FastModules::PURE_ACK && value & 0x20 != 0;
        host.set_fast_path(if is_on { on.with(module) } else { on.without(module) });
    }

    /// Passes the batch to both hosts, and compares what they send.
    fn turn(&mut self) {
        self.now = self.now + Duration::from_micros(50);
        let (batch, now, settings) = (std::mem::take(&mut self.batch), self.now, self.settings);
        // In some rounds the data is not read, so that the lock can be held while it is read later.
        let turn = Turn {
            locks: settings.has(LOCKED).then_some(self.sequences as usize % CONNECTIONS),
            reads: !settings.has(LOCKED) || self.sequences.is_multiple_of(4),
        };
        let sent = self.ends.each_mut().map(|end| {
            end.from.set_now(now);
            end.take(&batch, turn, now);
            by_flow(&end.from, settings.link())
        });
        self.sequences += 1;
        assert_eq!(sent[0], sent[1], "what leaves after {batch:?}");
        let [fast, slow] = self.ends.each_ref().map(|end| {
            let statistics = end.streams.iter().map(|stream| format!("{:?}", stream.statistics()));
            statistics.collect::<Vec<_>>()
        });
        assert_eq!(fast, slow, "after {batch:?}");
    }

    fn outcome(mut self) -> Outcome {
        let fast = self.ends[0].host.counters().fast;
        let slow = self.ends[1].host.counters().fast;
        assert_eq!((slow.consumed, fast.ring_overwritten), (0, 0));
        Outcome {
            sequences: self.sequences,
            consumed: fast.consumed,
            calls: fast.calls,
            waited: fast.ring_pushed,
            behind: [FallbackReason::Order, FallbackReason::Backlog]
                .map(|reason| fast.fallback(reason))
                .iter()
                .sum::<u64>()
                + fast.ring_refused,
        }
    }
}

/// Creates a host with connections to a peer, and an ACK of the peer for each.
fn open(settings: Settings, modules: FastModules) -> (End, Vec<Vec<u8>>) {
    let options = MemoryOptions { link: settings.link(), gso_bytes: 0, ..MemoryOptions::default() };
    let (to, from) = (MemoryLink::new(options), MemoryLink::new(options));
    let host = |source, sink, number, modules| {
        Host::new(source, sink, config(settings, number, modules)).expect("settings that can be")
    };
    let mut host_of = host(to.source(), from.sink(), HOST, modules);
    let mut peer = host(from.source(), to.sink(), PEER, FastModules::OFF);
    let listeners = PORTS.map(|port| {
        let listener = peer.handle().listen((settings.address(PEER), port).into(), 16);
        listener.expect("a free port")
    });
    let connect = |which: usize| {
        let server = (settings.address(PEER), PORTS[which / 2]).into();
        let stream = host_of.handle().connect_nonblocking(server).expect("a free port");
        stream.set_nonblocking(true).expect("a stream that lives");
        stream
    };
    let streams: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    // On Ethernet the hosts must resolve each other first.
    for _ in 0..12 {
        host_of.turn(OPENED_AT).expect("a link that is there");
        peer.turn(OPENED_AT).expect("a link that is there");
    }
    let accept = |listener: &TcpListener| {
        listener.set_nonblocking(true).expect("a listener that lives");
        std::iter::from_fn(|| listener.accept().ok()).collect::<Vec<_>>()
    };
    let accepted: Vec<_> = listeners.iter().flat_map(accept).collect();
    assert_eq!(accepted.len(), CONNECTIONS);
    let _left = (to.take_all(), from.take_all());
    let templates = accepted.iter().map(|(stream, _)| template(settings, stream, &mut peer, &to));
    let templates = templates.collect();
    (End { host: host_of, to, from, streams }, templates)
}

fn config(settings: Settings, number: u8, modules: FastModules) -> HostConfig {
    let bits = if settings.has(IPV6) { 64 } else { 24 };
    let network = IpCidr::new(settings.address(number), bits).expect("a network");
    let mut config = HostConfig::new(vec![network], [7, 11]);
    config.mac = Some([2, 0, 0, 0, 0, number]);
    config.tcp.timestamps = settings.has(TIMESTAMPS);
    config.tcp.sack = !settings.has(NO_SACK);
    config.tcp.acks = match settings.has(ONE_ACK) {
        true => AckPolicy::OneForATurn,
        false => AckPolicy::EverySecondSegment,
    };
    if settings.has(HELD) && number == HOST {
        // Longer than two batches. Pure ACKs bypass, because the slow path would hold them otherwise.
        let policy = &mut config.engine.policy;
        policy.hold = Hold::Within(Duration::from_micros(120));
        policy.pure_acks = PureAckRule::Bypass;
    }
    config.sockets = 16;
    config.time_waits = 16;
    config.neighbours = 16;
    config.engine.policy.flows = 16;
    config.fast_path.modules = modules;
    config
}

/// Returns a pure ACK of the peer on the connection of `stream`: the headers of the next segment that `peer`
/// sends, which is taken off the link.
fn template(
    settings: Settings,
    mut stream: &TcpStream,
    peer: &mut MemoryHost,
    to: &MemoryLink,
) -> Vec<u8> {
    use std::io::Write;
    stream.write_all(b"x").expect("an open stream");
    peer.turn(OPENED_AT).expect("a link that is there");
    let mut frame = to.take_all().pop().expect("a segment").bytes;
    frame.truncate(settings.end());
    frame[settings.tcp() + 13] = 0x10;
    settings.fix(&mut frame);
    frame
}

fn read_all(stream: &mut TcpStream) {
    use std::io::Read;
    let mut buffer = [0; 4_096];
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

/// Returns the packets that were sent, in order, by local port.
fn by_flow(link: &MemoryLink, kind: LinkKind) -> Vec<(u16, Vec<u8>)> {
    let mut all: Vec<_> = link
        .take_all()
        .into_iter()
        .map(|sent| {
            let parsed = kind.read(&sent.bytes, parse, parse_ip);
            let port = parsed.map_or(0, |parsed| parsed.key.source_port());
            (port, sent.bytes)
        })
        .collect();
    all.sort_by_key(|(port, _)| *port);
    all
}

/// The time at which the connections are opened.
const OPENED_AT: Instant = Instant::from_micros(1_000_000);
const CONNECTIONS: usize = 3;
/// The ports of the first two connections, and of the third, whose flow shares a slot of the fast path with
/// the first. If the test `flows_that_share_a_spot_begin_new_runs` fails, choose other ports.
const PORTS: [u16; 2] = [80, SHARING];
const SHARING: u16 = 211;
const HOST: u8 = 1;
const PEER: u8 = 2;

// The settings, one bit each.
const TIMESTAMPS: u8 = 1;
const NO_SACK: u8 = 2;
const ONE_ACK: u8 = 4;
const ETHERNET: u8 = 8;
const IPV6: u8 = 16;
/// The engine holds segments for longer than a poll.
const HELD: u8 = 32;
/// An application holds the lock of a connection while a batch arrives.
const LOCKED: u8 = 64;
/// Frames are padded, on Ethernet.
const PADDED: u8 = 128;
