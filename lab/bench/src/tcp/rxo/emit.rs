//! Turns a connection's output into frames on the link: GSO sends are cut into segments, templates are
//! expanded.

use std::num::NonZeroU16;

use rxo_ack::{AckNumbers, AckWriter, IdRule};
use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, Instant, LinkKind};
use rxo_tcp::{Text, Transmit};
use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::segmentation::{Checksums, Part, Segmenter, parts};
use rxo_wire::tcp::{CHECKSUM_AT, Timestamp};
use rxo_wire::{FlowKey, Offsets, PROTOCOL_TCP};

use crate::tcp::link::Port;

const IP_BYTES: usize = 20;
/// Bytes of the IP header, and of a TCP header with all its options.
const MOST_HEADER_BYTES: usize = 80;

/// Writes frames of a stack.
pub(super) struct Emitter {
    /// Computes checksums in software; `None` leaves them to the device.
    summer: Option<Summer>,
    /// `true` if later ACKs of a template are written as copies of the first with other numbers.
    templates: bool,
    id: u16,
}

impl Emitter {
    pub(super) fn new(checksums: bool, templates: bool) -> Self {
        Self { summer: checksums.then(Summer::detect), templates, id: 0 }
    }

    /// Sends the segments of `transmit` on the link as frames.
    pub(super) fn emit(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        if transmit.payload_bytes() > 0 {
            self.emit_text(pair, transmit, port);
        } else if self.templates && !transmit.later_acks.is_empty() {
            self.emit_template(pair, transmit, port);
        } else {
            self.emit_bare(pair, transmit, port);
        }
    }

    /// Segments like a device: builds the headers once, and changes only the differing fields in each
    /// segment.
    fn emit_text(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        let total = transmit.payload_bytes();
        let only = NonZeroU16::new(total as u16).expect("text");
        let (id, size) = (self.id, transmit.gso_size.unwrap_or(only));
        let mut whole = [0; MOST_HEADER_BYTES];
        let bytes = self.write(pair, &transmit.header(pair), total, &mut whole);
        let (whole, parts) = (&whole[..bytes], parts(total, size));
        self.id = id.wrapping_add(parts.len() as u16);
        if let (Some(size), true) = (transmit.gso_size, port.takes_large) {
            let gso = Gso::new(GsoKind::TcpV4, size);
            return port.send_large(bytes + total, gso, |to| fill(to, whole, transmit.payload));
        }
        let at = Offsets {
            network: 0,
            transport: IP_BYTES as u32,
            payload: bytes as u32,
            end: bytes as u32,
        };
        let checksums = self.summer.map_or(Checksums::Partial, Checksums::Complete);
        let segmenter = Segmenter::new(whole, at, size, checksums).expect("headers of TCP");
        let mut middle = [0; MOST_HEADER_BYTES];
        let middle = &mut middle[..bytes];
        middle.copy_from_slice(whole);
        let part = Part { index: 1, offset: 0, bytes: size.get().into(), is_last: false };
        segmenter.write(middle, part, []).expect("room for the headers");
        let mut rest = transmit.payload;
        for part in parts {
            let text = rest.split_to(part.bytes);
            port.send(bytes + part.bytes, |to| {
                fill(to, middle, text);
                let head = &mut to[..bytes];
                if !segmenter.write_middle(head, part, text.slices()) {
                    head.copy_from_slice(whole);
                    segmenter.write(head, part, text.slices()).expect("room for the headers");
                }
            });
        }
    }

    /// Builds each ACK separately.
    fn emit_bare(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        let mut one = *transmit;
        let mut later = transmit.later_acks.iter();
        loop {
            self.send(pair, &one.header(pair), port);
            let Some(pending) = later.next() else { return };
            one.set_acknowledgement(pending);
        }
    }

    /// Builds the first ACK, and writes the later ones as copies with other numbers. Not inlined, because the
    /// callers would leave too few registers for the loop.
    #[inline(never)]
    fn emit_template(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        let header = transmit.header(pair);
        let mut first = [0; MOST_HEADER_BYTES];
        let bytes = self.write(pair, &header, 0, &mut first);
        let first = &first[..bytes];
        port.send(bytes, |to| to.copy_from_slice(first));
        let value = clock(header.options);
        let frame = Frame { checksum: self.checksum(), ..Frame::new(first, Instant::ZERO) };
        let mut writer =
            AckWriter::new(frame, LinkKind::RawIp, IdRule::Increment).expect("a pure ACK");
        port.send_each(transmit.later_acks.iter(), |pending, buffer| {
            let timestamp = Timestamp { value, echo: pending.echo };
            let numbers = AckNumbers { ack: pending.ack, window: pending.window, timestamp };
            writer.write(&numbers, buffer.room(bytes));
        });
        self.id = self.id.wrapping_add(transmit.later_acks.len() as u16);
    }

    /// Returns the checksum status of an ACK: left to a device unless software computes it.
    fn checksum(&self) -> ChecksumStatus {
        match self.summer {
            Some(_) => ChecksumStatus::Verified,
            None => ChecksumStatus::Partial { start: IP_BYTES as u16, offset: CHECKSUM_AT as u16 },
        }
    }

    fn send(&mut self, pair: &FlowKey, tcp: &TcpHeader<'_>, port: &mut Port) {
        port.send(IP_BYTES + tcp.bytes(), |to| self.write(pair, tcp, 0, to));
    }

    /// Writes the headers of an IP packet with `text_bytes` of payload. Returns their length. The checksum is
    /// complete only without payload.
    fn write(
        &mut self,
        pair: &FlowKey,
        tcp: &TcpHeader<'_>,
        text_bytes: usize,
        to: &mut [u8],
    ) -> usize {
        let (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) =
            (pair.source(), pair.destination())
        else {
            unreachable!("the link is IPv4");
        };
        let id = self.id;
        self.id = id.wrapping_add(1);
        let ip = Ipv4Header {
            source,
            destination,
            protocol: PROTOCOL_TCP,
            id,
            payload_bytes: tcp.bytes() + text_bytes,
            ..Ipv4Header::default()
        };
        let segment = ip.write(to).expect("room for the headers");
        tcp.write(segment).expect("room for the headers");
        if let Some(summer) = self.summer.filter(|_| text_bytes == 0) {
            let segment = &mut segment[..tcp.bytes()];
            write_tcp_checksum(segment, ip.pseudo_header(), summer).expect("a TCP segment");
        }
        IP_BYTES + tcp.bytes()
    }
}

/// Copies `head` and then `text` into `to`.
#[inline]
fn fill(to: &mut [u8], head: &[u8], text: Text<'_>) {
    let (place, mut to) = to.split_at_mut(head.len());
    place.copy_from_slice(head);
    for piece in text.slices() {
        let (place, rest) = std::mem::take(&mut to).split_at_mut(piece.len());
        place.copy_from_slice(piece);
        to = rest;
    }
}

/// Returns TSval from `options` in this stack's format; 0 if there is none.
fn clock(options: &[u8]) -> u32 {
    let value = options.get(4..).and_then(|rest| rest.first_chunk());
    value.map_or(0, |value| u32::from_be_bytes(*value))
}
