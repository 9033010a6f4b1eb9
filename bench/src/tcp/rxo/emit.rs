//! What a connection gives out, as frames on the link: large sends cut into segments, templates
//! expanded.

use std::num::NonZeroU16;

use rxo_ack::{AckNumbers, AckSlot, AckTemplate, IdRule};
use rxo_frame::{Frame, Gso, GsoKind, Instant, LinkKind};
use rxo_tcp::{Text, Transmit};
use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::{Summer, ipv4_header_checksum, pseudo_header};
use rxo_wire::tcp::Timestamp;
use rxo_wire::{FlowKey, PROTOCOL_TCP, SeqNumber, TcpFlags};

use crate::tcp::link::{MTU, Port};

const IP_BYTES: usize = 20;
/// IP, and TCP with all its options.
const MOST_HEADER_BYTES: usize = 80;
/// As many ACKs as a connection can owe.
const MOST_ACKS: usize = 64;

/// Writes frames.
pub(super) struct Emitter {
    /// Computes checksums, where software does.
    summer: Option<Summer>,
    /// Whether ACKs that can be are expanded from a template.
    templates: bool,
    slots: Vec<AckSlot>,
    numbers: Vec<AckNumbers>,
    id: u16,
}

impl Emitter {
    pub(super) fn new(checksums: bool, templates: bool) -> Self {
        Self {
            summer: checksums.then(Summer::detect),
            templates,
            slots: vec![AckSlot::EMPTY; MOST_ACKS],
            numbers: Vec::with_capacity(MOST_ACKS),
            id: 0,
        }
    }

    /// Puts `transmit` on the link as frames.
    pub(super) fn emit(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        if transmit.payload_bytes() > 0 {
            self.emit_text(pair, transmit, port);
        } else if self.templates && !transmit.later_acks.is_empty() {
            self.emit_template(pair, transmit, port);
        } else {
            self.emit_bare(pair, transmit, port);
        }
    }

    /// What a device does that segments: the headers once, and in each segment what differs.
    fn emit_text(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        let total = transmit.payload_bytes();
        let size = transmit.gso_size.map_or(total, |size| size.get().into());
        let mut headers = [0; MOST_HEADER_BYTES];
        let whole = transmit.header(pair);
        let bytes = self.write(pair, &whole, &mut headers);
        if let (Some(size), true) = (transmit.gso_size, port.takes_large) {
            return self.emit_large(pair, (transmit, size), &headers[..bytes], port);
        }
        let mut rest = transmit.payload;
        for start in (0..total).step_by(size) {
            let end = total.min(start + size);
            let text = rest.split_to(size);
            let patch = Patch {
                id: self.id,
                seq: whole.seq + start as u32,
                is_last: end == total,
                flags: whole.flags,
            };
            self.id = self.id.wrapping_add(1);
            port.send(bytes + end - start, |to| {
                let (head, rest) = to.split_at_mut(bytes);
                head.copy_from_slice(&headers[..bytes]);
                patch.apply(head, end - start);
                fill(rest, text);
                self.checksum(to);
            });
        }
    }

    /// The whole large send, for a link that takes it.
    fn emit_large(
        &mut self,
        pair: &FlowKey,
        (transmit, size): (&Transmit<'_>, NonZeroU16),
        headers: &[u8],
        port: &mut Port,
    ) {
        let whole = transmit.header(pair);
        let total = transmit.payload_bytes();
        let patch = Patch { id: self.id, seq: whole.seq, is_last: true, flags: whole.flags };
        self.id = self.id.wrapping_add(total.div_ceil(size.get().into()) as u16);
        let gso = Gso { kind: GsoKind::TcpV4, ecn: false, size };
        port.send_large(headers.len() + total, gso, |to| {
            let (head, text) = to.split_at_mut(headers.len());
            head.copy_from_slice(headers);
            patch.apply(head, total);
            fill(text, transmit.payload);
        });
    }

    /// Completes the TCP checksum of an IP packet, where software does.
    fn checksum(&self, packet: &mut [u8]) {
        let Some(summer) = self.summer else { return };
        let addresses = packet.first_chunk::<IP_BYTES>().map(|ip| {
            let word = |at| u32::from_be_bytes([ip[at], ip[at + 1], ip[at + 2], ip[at + 3]]);
            FlowKey::v4(word(12), word(16), 0, 0)
        });
        let key = addresses.expect("an IP header");
        let segment = &mut packet[IP_BYTES..];
        let pseudo = pseudo_header(&key, PROTOCOL_TCP, segment.len() as u32);
        write_tcp_checksum(segment, pseudo, summer).expect("a TCP segment");
    }

    /// Each acknowledgement built by itself.
    fn emit_bare(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        let mut one = *transmit;
        let mut later = transmit.later_acks.iter();
        loop {
            self.send(pair, &one.header(pair), port);
            let Some(owed) = later.next() else { return };
            one.say(owed);
        }
    }

    /// The first is built, the others are expanded from it.
    fn emit_template(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        let header = transmit.header(pair);
        let mut first = [0; MTU];
        let bytes = self.write(pair, &header, &mut first);
        let timestamp = timestamp(header.options);
        let later = transmit.later_acks.iter();
        self.numbers.clear();
        self.numbers.extend(later.map(|ack| AckNumbers {
            ack: ack.ack,
            window: ack.window,
            timestamp: Timestamp { echo: ack.echo, ..timestamp },
        }));
        let frame = Frame::new(&first[..bytes], Instant::ZERO);
        let template = AckTemplate::new(frame, LinkKind::RawIp, &self.numbers, IdRule::Increment)
            .expect("a pure ACK");
        let acks = template.expand(&mut self.slots).expect("a slot for each");
        for ack in acks.iter() {
            port.send(ack.bytes.len(), |to| to.copy_from_slice(ack.bytes));
        }
        self.id = self.id.wrapping_add(self.numbers.len() as u16);
    }

    fn send(&mut self, pair: &FlowKey, tcp: &TcpHeader<'_>, port: &mut Port) {
        port.send(20 + tcp.bytes(), |to| self.write(pair, tcp, to));
    }

    /// Writes an IP packet without text; says how many bytes it has.
    fn write(&mut self, pair: &FlowKey, tcp: &TcpHeader<'_>, to: &mut [u8]) -> usize {
        let (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) =
            (pair.source(), pair.destination())
        else {
            unreachable!("the link is IPv4");
        };
        let payload_bytes = tcp.bytes();
        let id = self.id;
        let ip = Ipv4Header {
            source,
            destination,
            protocol: PROTOCOL_TCP,
            id,
            payload_bytes,
            ..Ipv4Header::default()
        };
        self.id = id.wrapping_add(1);
        let bytes = ip.bytes() + payload_bytes;
        let segment = ip.write(&mut to[..bytes]).expect("room for the headers");
        tcp.write(segment).expect("room for the headers");
        if let Some(summer) = self.summer {
            write_tcp_checksum(segment, ip.pseudo_header(), summer).expect("a TCP segment");
        }
        bytes
    }
}

/// What differs from one segment of a large send to the next.
struct Patch {
    id: u16,
    seq: SeqNumber,
    is_last: bool,
    flags: TcpFlags,
}

impl Patch {
    /// Writes it into the headers of a segment with `text` bytes.
    fn apply(&self, headers: &mut [u8], text: usize) {
        let packet = (headers.len() + text) as u16;
        let (ip, tcp) = headers.split_first_chunk_mut::<IP_BYTES>().expect("an IP header");
        ip[2..4].copy_from_slice(&packet.to_be_bytes());
        ip[4..6].copy_from_slice(&self.id.to_be_bytes());
        ip[10..12].fill(0);
        let checksum = ipv4_header_checksum(ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        tcp[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        let at_end = TcpFlags::FIN | TcpFlags::PSH;
        let flags = if self.is_last { self.flags } else { self.flags.without(at_end) };
        tcp[13] = flags.bits() as u8;
        tcp[16..18].fill(0);
    }
}

/// Copies `text`.
#[inline]
fn fill(mut to: &mut [u8], text: Text<'_>) {
    for piece in text.slices() {
        let (place, rest) = std::mem::take(&mut to).split_at_mut(piece.len());
        place.copy_from_slice(piece);
        to = rest;
    }
}

/// The timestamp in `options` as this stack writes it; zeros when there is none.
fn timestamp(options: &[u8]) -> Timestamp {
    let word = |at: usize| {
        options
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .map_or(0, |word| u32::from_be_bytes(*word))
    };
    Timestamp { value: word(4), echo: word(8) }
}
