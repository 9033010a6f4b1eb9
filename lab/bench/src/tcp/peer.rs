//! The generator: the peer of every connection when one stack is measured alone.
//!
//! It opens the connections, sends full segments as far as the window allows, and processes the ACKs. It
//! acknowledges every second segment that it receives. Never timed.

use rxo_frame::Instant;
use rxo_wire::build::{
    Ipv4Header, TcpHeader, maximum_segment_size_option, timestamp_option, write_tcp_checksum,
};
use rxo_wire::checksum::Summer;
use rxo_wire::tcp::Timestamp;
use rxo_wire::{PROTOCOL_TCP, SeqNumber, TcpFlags, Transport, parse_ip};

use super::link::{Buffer, MTU, Port};
use super::stack::{CLIENT, FIRST_PORT, SERVER, SERVER_PORT, Setting, TURN_FRAMES};

/// Segments that one of several connections sends in a row, as many as a device makes from a GSO frame.
pub(crate) const RUN_SEGMENTS: usize = 16;
/// The peer's window, as large as the stacks'.
const WINDOW_BYTES: u32 = 256 * 1024;
const SCALE: u8 = 3;
/// Bytes of the IP and TCP headers without options.
const HEADER_BYTES: usize = 40;
const TIMESTAMP_BYTES: usize = 12;

/// The peers of all connections.
pub(crate) struct Peer {
    flows: Vec<Flow>,
    timestamps: bool,
    /// Index of the connection that sends next.
    next: usize,
    /// The payload of every segment.
    text: Vec<u8>,
}

/// The peer of one connection.
#[derive(Clone, Copy, Debug)]
struct Flow {
    port: u16,
    is_open: bool,
    nxt: SeqNumber,
    /// Right edge of the stack's window.
    edge: SeqNumber,
    /// Window scale shift of the stack.
    scale: u8,
    /// Next sequence number expected from the stack.
    expected: SeqNumber,
    /// Number of the stack's segments that are not acknowledged yet.
    unanswered: u32,
    id: u16,
    /// TSval of the stack's last segment.
    stamp: u32,
}

impl Peer {
    pub(crate) fn new(setting: Setting) -> Self {
        let flow = |number: u16| Flow {
            port: FIRST_PORT + number,
            is_open: false,
            nxt: SeqNumber(1_000_000_u32.wrapping_mul(number.into())),
            edge: SeqNumber(0),
            scale: 0,
            expected: SeqNumber(0),
            unanswered: 0,
            id: number,
            stamp: 0,
        };
        let options = if setting.timestamps { TIMESTAMP_BYTES } else { 0 };
        Self {
            flows: (0..setting.connections).map(flow).collect(),
            timestamps: setting.timestamps,
            next: 0,
            text: (0..MTU - HEADER_BYTES - options).map(|at| at as u8).collect(),
        }
    }

    /// Returns the payload bytes of a full segment.
    pub(crate) fn segment_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns `true` if every connection is open.
    pub(crate) fn is_open(&self) -> bool {
        self.flows.iter().all(|flow| flow.is_open)
    }

    /// Sends a SYN on each closed connection, at most as many as a stack receives per turn.
    pub(crate) fn open(&mut self, port: &mut Port, now: Instant) {
        let closed = (0..self.flows.len()).filter(|index| !self.flows[*index].is_open);
        for index in closed.take(TURN_FRAMES).collect::<Vec<_>>() {
            let frame = self.frame(index, TcpFlags::SYN, 0, now);
            port.arrive(frame, now);
        }
    }

    /// Sends at most `frames` full segments, a run for each connection in turn, as far as their
    /// windows allow.
    pub(crate) fn send(&mut self, port: &mut Port, frames: usize, now: Instant) {
        let mut left = frames;
        for _ in 0..self.flows.len() {
            let index = self.next;
            let run = if self.flows.len() == 1 { frames } else { RUN_SEGMENTS };
            let may_send = (self.flows[index].room() as usize / self.text.len()).min(run);
            if may_send > left {
                return;
            }
            self.next = (index + 1) % self.flows.len();
            for _ in 0..may_send {
                let frame = self.frame(index, TcpFlags::ACK, self.text.len(), now);
                port.arrive(frame, now);
            }
            left -= may_send;
        }
    }

    /// Processes the frames that the stack has sent, and answers them.
    pub(crate) fn receive(&mut self, port: &mut Port, now: Instant) {
        while let Some(frame) = port.sent.pop_front() {
            if let Some(answer) = self.take(frame.buffer.as_ref(), now) {
                port.arrive(answer, now);
            }
        }
    }

    fn take(&mut self, packet: &[u8], now: Instant) -> Option<Buffer> {
        let parsed = parse_ip(packet).expect("a stack sends packets that can be read");
        let Transport::Tcp(tcp) = parsed.transport else { panic!("a stack sends TCP") };
        let index = usize::from(parsed.key.destination_port() - FIRST_PORT);
        let flow = &mut self.flows[index];
        if tcp.flags.contains(TcpFlags::SYN) {
            let options = packet.get(parsed.at.tcp_options());
            flow.scale = scale(options.unwrap_or_default());
            flow.expected = tcp.seq + 1;
            flow.edge = tcp.ack + u32::from(tcp.window);
            flow.nxt = tcp.ack;
            flow.is_open = true;
            return Some(self.frame(index, TcpFlags::ACK, 0, now));
        }
        flow.edge = tcp.ack + (u32::from(tcp.window) << flow.scale);
        let bytes = parsed.payload_bytes();
        if bytes == 0 || tcp.seq != flow.expected {
            return None;
        }
        flow.expected = flow.expected + bytes;
        flow.unanswered += 1;
        let is_due = flow.unanswered == 2;
        is_due.then(|| self.frame(index, TcpFlags::ACK, 0, now))
    }

    /// Makes the next segment of a connection.
    fn frame(&mut self, index: usize, flags: TcpFlags, text: usize, now: Instant) -> Buffer {
        let flow = &mut self.flows[index];
        let mut options = Vec::new();
        if flags.contains(TcpFlags::SYN) {
            options.extend(maximum_segment_size_option((MTU - HEADER_BYTES) as u16));
            options.extend([1, 3, 3, SCALE]);
        }
        if self.timestamps {
            flow.stamp = (now.as_nanos() / 1_000_000) as u32;
            options.extend(timestamp_option(Timestamp { value: flow.stamp, echo: 0 }));
        }
        let tcp = TcpHeader {
            source_port: flow.port,
            destination_port: SERVER_PORT,
            seq: flow.nxt,
            ack: flow.expected,
            flags,
            window: (WINDOW_BYTES >> SCALE) as u16,
            options: &options,
            ..TcpHeader::default()
        };
        let ip = Ipv4Header {
            source: CLIENT.into(),
            destination: SERVER.into(),
            protocol: PROTOCOL_TCP,
            id: flow.id,
            payload_bytes: tcp.bytes() + text,
            ..Ipv4Header::default()
        };
        flow.id = flow.id.wrapping_add(1);
        if !flags.contains(TcpFlags::SYN) {
            flow.nxt = flow.nxt + text as u32;
            flow.unanswered = 0;
        }
        packet(&ip, &tcp, &self.text[..text])
    }
}

impl Flow {
    fn room(&self) -> u32 {
        if self.is_open { u32::try_from(self.edge - self.nxt).unwrap_or(0) } else { 0 }
    }
}

fn packet(ip: &Ipv4Header<'_>, tcp: &TcpHeader<'_>, text: &[u8]) -> Buffer {
    let mut buffer = Buffer::take(ip.bytes() + ip.payload_bytes);
    let segment = ip.write(buffer.bytes_mut()).expect("room for the headers");
    tcp.write(segment).expect("room for the headers").copy_from_slice(text);
    write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect()).expect("a TCP segment");
    buffer
}

/// Returns the window scale from a SYN's options; 0 if it is missing.
fn scale(options: &[u8]) -> u8 {
    use rxo_wire::tcp::{OptionKind, Options};
    let scale = |kind, data: &[u8]| (kind == OptionKind::WindowScale).then(|| data[0]);
    let mut read = Options::new(options).map_while(Result::ok);
    read.find_map(|option| scale(option.kind, option.data)).unwrap_or(0)
}
