//! What the property test and the fuzz target share: any bytes are frames for two hosts. One of them has the fast path on.
//!
//! Both have the same connections and get the same frames, in the same batches, at the same times. What must hold:
//! nothing panics; after each batch both have sent the same packets of each connection, and their connections are the
//! same in all that statistics say.

use std::net::SocketAddr;
use std::time::Duration;

use rxo_device::{MemoryLink, MemoryOptions, MemorySink, MemorySource};
use rxo_frame::{ChecksumStatus, Frame, Instant, LinkKind};
use rxo_host::{FastModule, FastModules, Host, HostConfig, IpCidr, TcpListener, TcpStream};
use rxo_tcp::AckPolicy;
use rxo_wire::checksum::ipv4_header_checksum;
use rxo_wire::parse_ip;

type MemoryHost = Host<MemorySource, MemorySink>;

/// What a script reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Batches that both hosts took.
    pub(crate) sequences: u64,
    /// ACKs that the fast path consumed.
    pub(crate) consumed: u64,
    /// Calls of connections in which they were given.
    pub(crate) calls: u64,
}

/// Plays the script `data`. Its first byte chooses the settings.
///
/// # Panics
/// If something does not hold.
pub(crate) fn run(data: &[u8]) -> Outcome {
    let Some((settings, script)) = data.split_first() else { return Outcome::default() };
    let mut twins = Twins::new(*settings);
    let mut script = Script(script);
    while let Some(step) = script.byte() {
        twins.step(step, &mut script);
    }
    twins.turn();
    twins.outcome()
}

/// The bytes that are left.
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

/// Both hosts, the fast one first, and the frames of the next batch.
struct Twins {
    ends: [End; 2],
    /// A pure ACK of the peer for each connection.
    templates: Vec<Vec<u8>>,
    batch: Vec<(Vec<u8>, ChecksumStatus)>,
    now: Instant,
    sequences: u64,
}

impl Twins {
    fn new(settings: u8) -> Self {
        let [(fast, templates), (slow, _)] =
            [FastModules::ON, FastModules::OFF].map(|modules| open(settings, modules));
        let now = Instant::from_micros(2_000_000);
        Self { ends: [fast, slow], templates, batch: Vec::new(), now, sequences: 0 }
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
        if self.batch.len() == MOST_FRAMES {
            self.turn();
        }
    }

    /// An ACK of a part of what was sent, perhaps more, with any window.
    fn ack(&mut self, which: usize, script: &mut Script<'_>) {
        let (part, window) = (script.value(), script.value());
        let seen = self.ends[0].streams[which].statistics();
        let sent = (seen.snd_nxt - seen.snd_una).unsigned_abs();
        // 255 is everything; a few are beyond it.
        let acked =
            (u64::from(sent) * u64::from(part)).div_ceil(255) as u32 + u32::from(part == 254);
        let mut packet = self.packet(which);
        packet[28..32].copy_from_slice(&(seen.snd_una + acked).0.to_be_bytes());
        packet[24..28].copy_from_slice(&seen.rcv_nxt.0.to_be_bytes());
        packet[34..36].copy_from_slice(&(u16::from(window) << 4).to_be_bytes());
        self.batch.push((packet, ChecksumStatus::Verified));
    }

    /// The template of a connection, with what the peer's clock shows now.
    fn packet(&self, which: usize) -> Vec<u8> {
        let mut packet = self.templates[which].clone();
        if let Some(value) = packet.get_mut(44..48) {
            let at_first = u32::from_be_bytes([value[0], value[1], value[2], value[3]]);
            let millis = (self.now.since(OPENED_AT).as_millis()) as u32;
            value.copy_from_slice(&at_first.wrapping_add(millis).to_be_bytes());
        }
        packet
    }

    /// The last frame, or an ACK, with some bytes changed; the IP header's checksum is made right for most.
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
            fix_ip(&mut packet);
        }
        let checksum = match script.value() % 4 {
            0 => ChecksumStatus::Unknown,
            _ => ChecksumStatus::Verified,
        };
        self.batch.push((packet, checksum));
    }

    /// A segment with text that the peer sends next, or an older one.
    fn text(&mut self, which: usize, script: &mut Script<'_>) {
        let (bytes, back) = (1 + usize::from(script.value()), script.value());
        let seen = self.ends[0].streams[which].statistics();
        let mut packet = self.packet(which);
        let seq = seen.rcv_nxt.0.wrapping_sub(u32::from(back % 4) * 100);
        packet[24..28].copy_from_slice(&seq.to_be_bytes());
        packet[28..32].copy_from_slice(&seen.snd_una.0.to_be_bytes());
        packet.resize(packet.len() + bytes, back);
        let total = packet.len() as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        fix_ip(&mut packet);
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
        let switches = self.ends[0].host.handle().fast_path();
        let module = FastModule::ALL[usize::from(value) % 3];
        switches
            .set(module, value & 0x10 != 0 || module == FastModule::PureAck && value & 0x20 != 0);
    }

    /// Gives both hosts the batch, and compares what they do.
    fn turn(&mut self) {
        self.now = self.now + Duration::from_micros(50);
        let (batch, now) = (std::mem::take(&mut self.batch), self.now);
        let sent = self.ends.each_mut().map(|end| {
            end.from.set_now(now);
            for (bytes, checksum) in &batch {
                end.to.push(&Frame { checksum: *checksum, ..Frame::new(&bytes[..], now) });
            }
            end.host.turn(now).expect("a link that is there");
            end.streams.iter_mut().for_each(read_all);
            by_flow(&end.from)
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
        assert_eq!(slow.consumed, 0);
        Outcome { sequences: self.sequences, consumed: fast.consumed, calls: fast.calls }
    }
}

/// A host with connections to a peer, and an ACK of the peer for each.
fn open(settings: u8, modules: FastModules) -> (End, Vec<Vec<u8>>) {
    let options = MemoryOptions { link: LinkKind::RawIp, gso_bytes: 0, ..MemoryOptions::default() };
    let (to, from) = (MemoryLink::new(options), MemoryLink::new(options));
    let host = |source, sink, address, modules| {
        Host::new(source, sink, config(settings, address, modules)).expect("settings that can be")
    };
    let mut host_of = host(to.source(), from.sink(), [10, 0, 0, 1], modules);
    let mut peer = host(from.source(), to.sink(), [10, 0, 0, 2], FastModules::OFF);
    let listeners = PORTS.map(|port| {
        let listener = peer.handle().listen(([10, 0, 0, 2], port).into(), 16);
        listener.expect("a free port")
    });
    let connect = |which: usize| {
        let server = ([10, 0, 0, 2], PORTS[which / 2]).into();
        let stream = host_of.handle().connect_nonblocking(server).expect("a free port");
        stream.set_nonblocking(true).expect("a stream that lives");
        stream
    };
    let streams: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    for _ in 0..4 {
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
    let templates = accepted.iter().map(|(stream, host)| {
        let mut packet = template(settings, stream, *host);
        let clock = clock(stream, &mut peer, &to);
        packet.get_mut(44..48).into_iter().for_each(|value| value.copy_from_slice(&clock));
        packet
    });
    let templates = templates.collect();
    (End { host: host_of, to, from, streams }, templates)
}

fn config(settings: u8, address: [u8; 4], modules: FastModules) -> HostConfig {
    let network = IpCidr::new(address.into(), 24).expect("a network of 24 bits");
    let mut config = HostConfig::new(vec![network], [7, 11]);
    config.tcp.timestamps = settings & 1 != 0;
    config.tcp.sack = settings & 2 == 0;
    config.tcp.acks =
        if settings & 4 != 0 { AckPolicy::OneForATurn } else { AckPolicy::EverySecondSegment };
    config.sockets = 16;
    config.time_waits = 16;
    config.neighbours = 16;
    config.engine.policy.flows = 16;
    config.fast_path.modules = modules;
    config
}

/// A pure ACK of the connection that `stream` is one end of, towards `host`.
fn template(settings: u8, stream: &TcpStream, host: SocketAddr) -> Vec<u8> {
    let local = stream.local_addr().expect("an open stream");
    let has_timestamp = settings & 1 != 0;
    let length: u16 = if has_timestamp { 52 } else { 40 };
    let mut packet = vec![0; length.into()];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[8..10].copy_from_slice(&[64, 6]);
    packet[12..16].copy_from_slice(&[10, 0, 0, 2]);
    packet[16..20].copy_from_slice(&[10, 0, 0, 1]);
    packet[20..22].copy_from_slice(&local.port().to_be_bytes());
    packet[22..24].copy_from_slice(&host.port().to_be_bytes());
    packet[32..34].copy_from_slice(&[if has_timestamp { 0x80 } else { 0x50 }, 0x10]);
    if has_timestamp {
        packet[40..44].copy_from_slice(&[1, 1, 8, 10]);
    }
    fix_ip(&mut packet);
    packet
}

/// What the clock of timestamps shows in what `peer` sends on `stream`, which arrives nowhere.
fn clock(mut stream: &TcpStream, peer: &mut MemoryHost, to: &MemoryLink) -> [u8; 4] {
    use std::io::Write;
    stream.write_all(b"x").expect("an open stream");
    peer.turn(OPENED_AT).expect("a link that is there");
    let sent = to.take_all();
    let clock = sent.last().and_then(|sent| sent.bytes.get(44..48)?.try_into().ok());
    clock.unwrap_or_default()
}

/// Makes the checksum of the IPv4 header right, if there is one without options.
fn fix_ip(packet: &mut [u8]) {
    if packet.len() >= 20 {
        packet[10..12].fill(0);
        let checksum = ipv4_header_checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn read_all(stream: &mut TcpStream) {
    use std::io::Read;
    let mut buffer = [0; 4_096];
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

/// What was sent, in order, by local port.
fn by_flow(link: &MemoryLink) -> Vec<(u16, Vec<u8>)> {
    let mut all: Vec<_> = link
        .take_all()
        .into_iter()
        .map(|sent| {
            let port = parse_ip(&sent.bytes).map_or(0, |parsed| parsed.key.source_port());
            (port, sent.bytes)
        })
        .collect();
    all.sort_by_key(|(port, _)| *port);
    all
}

/// When the connections were opened.
const OPENED_AT: Instant = Instant::from_micros(1_000_000);
const CONNECTIONS: usize = 3;
/// Where the first two connections lead, and the third, whose flow shares its spot of the fast path with that of the
/// first. The test `flows_that_share_a_spot_begin_new_runs` fails if it does not any more: then try other ports.
const PORTS: [u16; 2] = [80, SHARING];
const SHARING: u16 = 211;
const MOST_FRAMES: usize = 24;
