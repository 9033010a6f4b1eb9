//! What a connection gives out, as frames on the link: large sends cut into segments, templates
//! expanded.

use rxo_ack::{AckNumbers, AckSlot, AckTemplate, IdRule};
use rxo_frame::{Frame, Instant, LinkKind};
use rxo_tcp::Transmit;
use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::tcp::Timestamp;
use rxo_wire::{FlowKey, TcpFlags};

use crate::tcp::link::{MTU, Port};

const TCP: u8 = 6;
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

    /// What a device does that segments: each with a header of its own.
    fn emit_text(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        let whole = transmit.header(pair);
        let total = transmit.payload_bytes();
        let size = transmit.gso_size.map_or(total, |size| size.get().into());
        for start in (0..total).step_by(size) {
            let end = total.min(start + size);
            let at_end = TcpFlags::FIN | TcpFlags::PSH;
            let flags = if end < total { whole.flags.without(at_end) } else { whole.flags };
            let header = TcpHeader { seq: whole.seq + start as u32, flags, ..whole };
            let text = part(transmit.payload, start, end);
            self.send(pair, &header, text, port);
        }
    }

    /// Each acknowledgement built by itself.
    fn emit_bare(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        let header = transmit.header(pair);
        self.send(pair, &header, [&[], &[]], port);
        for later in transmit.later_acks {
            let header = TcpHeader { ack: later.ack, window: later.window, ..header };
            self.send(pair, &header, [&[], &[]], port);
        }
    }

    /// The first is built, the others are expanded from it.
    fn emit_template(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, port: &mut Port) {
        let header = transmit.header(pair);
        let mut first = [0; MTU];
        let bytes = self.write(pair, &header, [&[], &[]], &mut first);
        let timestamp = timestamp(header.options);
        let later = transmit.later_acks.iter();
        self.numbers.clear();
        self.numbers.extend(later.map(|ack| AckNumbers {
            ack: ack.ack,
            window: ack.window,
            timestamp,
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

    fn send(&mut self, pair: &FlowKey, tcp: &TcpHeader<'_>, text: [&[u8]; 2], port: &mut Port) {
        let bytes = 20 + tcp.bytes() + text[0].len() + text[1].len();
        port.send(bytes, |to| self.write(pair, tcp, text, to));
    }

    /// Writes an IP packet; says how many bytes it has.
    fn write(
        &mut self,
        pair: &FlowKey,
        tcp: &TcpHeader<'_>,
        [first, second]: [&[u8]; 2],
        to: &mut [u8],
    ) -> usize {
        let (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) =
            (pair.source(), pair.destination())
        else {
            unreachable!("the link is IPv4");
        };
        let payload_bytes = tcp.bytes() + first.len() + second.len();
        let id = self.id;
        let ip = Ipv4Header {
            source,
            destination,
            protocol: TCP,
            id,
            payload_bytes,
            ..Ipv4Header::default()
        };
        self.id = id.wrapping_add(1);
        let bytes = ip.bytes() + payload_bytes;
        let segment = ip.write(&mut to[..bytes]).expect("room for the headers");
        let text = tcp.write(segment).expect("room for the headers");
        text[..first.len()].copy_from_slice(first);
        text[first.len()..].copy_from_slice(second);
        if let Some(summer) = self.summer {
            write_tcp_checksum(segment, ip.pseudo_header(), summer).expect("a TCP segment");
        }
        bytes
    }
}

/// The bytes from `start` to `end` of text in two pieces.
fn part([first, second]: [&[u8]; 2], start: usize, end: usize) -> [&[u8]; 2] {
    let cut = first.len();
    let second = &second[start.saturating_sub(cut)..end.saturating_sub(cut)];
    [&first[start.min(cut)..end.min(cut)], second]
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
