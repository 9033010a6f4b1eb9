//! A simple model of a cast's sender, which implements docs/cast.md on a packet socket without rxo's TCP.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::{Device, DeviceOptions, wait};
use rxo_frame::Frame;
use rxo_testbed::Namespace;

pub(crate) const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const GROUP: Ipv4Addr = Ipv4Addr::new(232, 1, 1, 1);
const PORT: u16 = 7_000;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ISS: u32 = u32::MAX - 1_000_000;
const MSS: usize = 1_400;
/// The number of bytes by which the group may be ahead of its slowest receiver.
const WINDOW: usize = 60 * MSS;
const STALLED: Duration = Duration::from_millis(30);
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// The result for a receiver.
#[derive(Debug)]
#[allow(dead_code, reason = "a failed test shows all of it")]
pub(crate) struct Fared {
    pub(crate) ip: Ipv4Addr,
    /// `true` if the receiver has closed its connection.
    pub(crate) is_done: bool,
    /// Number of repairs that were sent to it.
    pub(crate) repairs: u32,
    /// The largest receive window that it offered, in bytes.
    pub(crate) window: u32,
}

/// The settings of a cast.
#[derive(Clone)]
pub(crate) struct Cast {
    pub(crate) stream: Vec<u8>,
    /// Number of receivers: the cast begins when all have connected, and ends when all have closed.
    pub(crate) receivers: usize,
    /// The loss rate: one of this many segments to the group is dropped.
    pub(crate) one_lost_of: u32,
}

impl Cast {
    /// Runs the sender in `namespace`, on its interface eth0, which has no address.
    pub(crate) fn start(
        self,
        namespace: &Namespace,
    ) -> JoinHandle<rxo_testbed::Result<Vec<Fared>>> {
        namespace.spawn("sender", move || Sender::new(self).run()).unwrap()
    }
}

struct Receiver {
    mac: [u8; 6],
    nxt: u32,
    una: usize,
    is_done: bool,
    /// `true` after the receiver has sent an RST. Silence alone proves nothing on a busy machine. A receiver
    /// that was killed and restarted answers with an RST, because it does not know the connection.
    is_gone: bool,
    repairs: u32,
    heard_at: Instant,
    window_scale: u8,
    window: u32,
}

struct Sender {
    cast: Cast,
    device: Device,
    receivers: BTreeMap<(Ipv4Addr, u16), Receiver>,
    begun: Instant,
    sent: usize,
    chance: u32,
}

impl Sender {
    fn new(cast: Cast) -> Self {
        let device =
            Device::open(&"packet:eth0".parse().unwrap(), DeviceOptions::default()).unwrap();
        let begun = Instant::now();
        Self { cast, device, receivers: BTreeMap::new(), begun, sent: 0, chance: 77 }
    }

    fn run(mut self) -> Vec<Fared> {
        while self.receivers.len() < self.cast.receivers {
            self.hear();
        }
        // The receivers' last ACKs of the handshake may be in flight.
        wait::pause(Duration::from_millis(200));
        self.begun = Instant::now();
        self.receivers.values_mut().for_each(|it| it.heard_at = Instant::now());
        while self.receivers.values().filter(|it| it.is_done).count() < self.cast.receivers {
            assert!(self.begun.elapsed() < crate::process::LONG, "{:?}", self.fared());
            self.send();
            self.hear();
            self.repair();
        }
        self.hear();
        self.fared()
    }

    fn fared(&self) -> Vec<Fared> {
        let all = self.receivers.iter().filter(|(_, it)| !it.is_gone);
        let fared = |((ip, _), it): (&(Ipv4Addr, u16), &Receiver)| {
            let Receiver { is_done, repairs, window, .. } = *it;
            Fared { ip: *ip, is_done, repairs, window }
        };
        all.map(fared).collect()
    }

    /// Returns the offset after the FIN, which follows the stream.
    fn end(&self) -> usize {
        self.cast.stream.len() + 1
    }

    fn send(&mut self) {
        let live = self.receivers.values().filter(|it| !it.is_gone);
        let Some(least) = live.map(|it| it.una).min() else { return };
        while self.sent < self.end().min(least + WINDOW) {
            let at = self.sent;
            self.sent = self.end().min(at + MSS);
            let frame = self.segment([1, 0, 0x5e, 1, 1, 1], (GROUP, 7_000), (at, 0xdead_beef));
            self.chance ^= self.chance << 13;
            self.chance ^= self.chance >> 17;
            self.chance ^= self.chance << 5;
            if !self.chance.is_multiple_of(self.cast.one_lost_of) {
                self.put(&frame);
            }
        }
    }

    /// Resends by unicast to receivers that made no progress; a late receiver gets the beginning in this way.
    fn repair(&mut self) {
        let now = Instant::now();
        let mut frames = Vec::new();
        for ((ip, port), it) in &mut self.receivers {
            let is_stalled = now - it.heard_at > STALLED && it.una < self.sent;
            if it.is_gone || it.is_done || !is_stalled {
                continue;
            }
            it.repairs += 1;
            let until = self.sent.min(it.una + WINDOW / 2);
            frames.extend(
                (it.una..until).step_by(MSS).map(|at| (it.mac, (*ip, *port), (at, it.nxt))),
            );
        }
        for (mac, to, numbers) in frames {
            let frame = self.segment(mac, to, numbers);
            self.put(&frame);
        }
        wait::pause(Duration::from_millis(1));
    }

    /// Returns the segment at offset `at` of the stream; the last one has the FIN.
    fn segment(&self, mac: [u8; 6], to: (Ipv4Addr, u16), (at, ack): (usize, u32)) -> Vec<u8> {
        let until = self.cast.stream.len().min(at + MSS);
        let text = self.cast.stream.get(at..until).unwrap_or_default();
        let is_last = at + MSS >= self.end();
        let flags = if is_last { FIN | ACK } else { ACK };
        self.frame(mac, to, (ISS.wrapping_add(1 + at as u32), ack, flags), (text, 0))
    }

    fn put(&mut self, frame: &[u8]) {
        let frame = Frame::new(frame, rxo_frame::Instant::ZERO);
        self.device.sink.transmit(std::iter::once(frame)).unwrap();
    }

    fn hear(&mut self) {
        let mut batch = Vec::new();
        self.device.source.receive(&mut batch, 512).unwrap();
        for frame in batch {
            let bytes = frame.bytes().to_vec();
            match bytes.get(12..14) {
                Some([8, 6]) => self.hear_arp(&bytes),
                Some([8, 0]) if bytes[23] == 6 && bytes[30..34] == SENDER.octets() => {
                    self.hear_segment(&bytes);
                }
                _ => {}
            }
        }
    }

    fn hear_arp(&mut self, bytes: &[u8]) {
        if bytes[20..22] == [0, 1] && bytes[38..42] == SENDER.octets() {
            let asker = &bytes[22..32];
            let head = [&asker[..6], &MAC, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
            self.put(&[&head, &MAC[..], &SENDER.octets(), asker].concat());
        }
    }

    fn hear_segment(&mut self, bytes: &[u8]) {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let tcp = 14 + usize::from(bytes[14] & 15) * 4;
        let (seq, ack, flags) = (word(tcp + 4), word(tcp + 8), bytes[tcp + 13]);
        let ip = Ipv4Addr::from_bits(word(26));
        let port = u16::from_be_bytes([bytes[tcp], bytes[tcp + 1]]);
        let mac: [u8; 6] = bytes[6..12].try_into().unwrap();
        let (key, heard_at) = ((ip, port), Instant::now());
        if flags & SYN != 0 {
            let nxt = seq.wrapping_add(1);
            let options = bytes.get(tcp + 20..tcp + usize::from(bytes[tcp + 12] >> 4) * 4);
            let value = |kind| options.and_then(|options| option(options, kind));
            let stamps = value(8).expect("a receiver uses timestamps");
            let echo = u32::from_be_bytes(stamps[..4].try_into().unwrap());
            let new = Receiver {
                mac,
                nxt,
                una: 0,
                is_done: false,
                is_gone: false,
                repairs: 0,
                heard_at,
                window_scale: value(3).map_or(0, |scale| scale[0]),
                window: 0,
            };
            self.receivers.insert(key, new);
            let answer = self.frame(mac, key, (ISS, nxt, SYN | ACK), (&[], echo));
            return self.put(&answer);
        }
        let Some(receiver) = self.receivers.get_mut(&key) else { return };
        let window = u32::from(u16::from_be_bytes([bytes[tcp + 14], bytes[tcp + 15]]));
        receiver.window = receiver.window.max(window << receiver.window_scale);
        receiver.is_gone |= flags & RST != 0 && !receiver.is_done;
        let acked = ack.wrapping_sub(ISS + 1) as usize;
        if acked > receiver.una && acked < 1 << 31 {
            (receiver.una, receiver.heard_at) = (acked, heard_at);
        }
        if flags & FIN != 0 {
            let header = usize::from(bytes[tcp + 12] >> 4) * 4;
            let packet = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
            let text = 14 + packet - tcp - header;
            receiver.nxt = seq.wrapping_add(text as u32 + 1);
            receiver.is_done = true;
            let nxt = receiver.nxt;
            let seq = ISS.wrapping_add(1 + self.end() as u32);
            let answer = self.frame(mac, key, (seq, nxt, ACK), (&[], 0));
            self.put(&answer);
        }
    }

    fn frame(
        &self,
        mac: [u8; 6],
        (ip, port): (Ipv4Addr, u16),
        (seq, ack, flags): (u32, u32, u8),
        (text, echo): (&[u8], u32),
    ) -> Vec<u8> {
        let clock = (4_000_000_000_u32).wrapping_add(self.begun.elapsed().as_millis() as u32);
        // The timestamp clock must not go backwards where the cast begins.
        let clock = if self.sent == 0 && text.is_empty() { 4_000_000_000 } else { clock };
        let stamps = [clock.to_be_bytes(), echo.to_be_bytes()].concat();
        let mut options = [&[1, 1, 8, 10][..], &stamps].concat();
        if flags & SYN != 0 {
            options.extend([2, 4, 5, 0x78, 4, 2, 1, 1, 3, 3, 7, 0]);
        }
        let mut tcp = [PORT.to_be_bytes(), port.to_be_bytes()].concat();
        tcp.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        tcp.extend([((20 + options.len()) * 4) as u8, flags, 2, 0, 0, 0, 0, 0]);
        tcp.extend([&options, text].concat());
        let pseudo =
            [&SENDER.octets()[..], &ip.octets(), &[0, 6], &(tcp.len() as u16).to_be_bytes()];
        let sum = checksum(&[&pseudo.concat(), &tcp[..]].concat());
        tcp[16..18].copy_from_slice(&sum);
        let length = (20 + tcp.len() as u16).to_be_bytes();
        let mut header = [&[0x45, 0][..], &length, &[0, 0, 0x40, 0, 64, 6, 0, 0]].concat();
        header.extend([SENDER.octets(), ip.octets()].concat());
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum);
        [&mac[..], &MAC, &[8, 0], &header, &tcp].concat()
    }
}

/// Returns the value of the TCP option `kind`; `None` if it is not among `options`.
fn option(mut options: &[u8], kind: u8) -> Option<&[u8]> {
    while let [first, rest @ ..] = options {
        if *first == 1 {
            options = rest;
            continue;
        }
        let length = usize::from(*rest.first()?).max(2);
        if *first == kind {
            return options.get(2..length);
        }
        options = options.get(length..)?;
    }
    None
}

/// Returns the internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words =
        bytes.chunks(2).map(|it| (u32::from(it[0]) << 8) | u32::from(*it.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum >> 16 > 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}
