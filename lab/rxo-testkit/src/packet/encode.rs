//! Encodes a [`Packet`] as bytes.

use rxo_frame::{ChecksumStatus, Frame, Instant, LinkKind};

use super::{Body, Packet};
use crate::{naive, payload};

const MAC_ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
const TCP: u8 = 6;
const UDP: u8 = 17;
const FRAGMENT: u8 = 44;

impl Packet {
    /// Returns the bytes of the frame, without the device's metadata.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = match &self.outer {
            None => self.own_bytes(),
            Some(outer) => {
                let inner = Self { link: LinkKind::Ethernet, outer: None, ..self.clone() };
                let complete = Self { status: ChecksumStatus::Unknown, ..inner.clone() };
                outer.wrap(&inner.own_bytes(), &complete.own_bytes(), self.link)
            }
        };
        out.resize(out.len().max(self.pad_to), self.padding);
        out.truncate(out.len().saturating_sub(self.cut));
        out
    }

    /// Returns the bytes without tunnel, padding and truncation.
    fn own_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.own_transport_at() + 60 + self.len);
        self.write_link(&mut out);
        match (self.body, self.v6) {
            (Body::Arp, _) => out.extend_from_slice(&arp_request()),
            (_, false) => self.write_v4(&mut out),
            (_, true) => self.write_v6(&mut out),
        }
        out
    }

    /// Returns the frame with an arrival time of zero.
    #[must_use]
    pub fn frame(&self) -> Frame<Vec<u8>> {
        self.frame_at(Instant::ZERO)
    }

    /// Returns the frame with the arrival time `now`.
    #[must_use]
    pub fn frame_at(&self, now: Instant) -> Frame<Vec<u8>> {
        let mut frame = Frame::new(self.bytes(), now);
        frame.checksum = self.status();
        frame.gso = self.gso;
        frame
    }

    /// Returns the checksum status of the frame. The start of a partial checksum is set here, when all offsets are
    /// final.
    fn status(&self) -> ChecksumStatus {
        let start = self.transport_at() as u16;
        match (self.elsewhere, self.status) {
            (Some((bytes, offset)), _) => {
                ChecksumStatus::Partial { start: start.wrapping_add(bytes), offset }
            }
            (None, ChecksumStatus::Partial { offset, .. }) => {
                ChecksumStatus::Partial { start, offset }
            }
            (None, status) => status,
        }
    }

    /// Returns the offset of the transport header from the start of the frame; inside a tunnel, that of the
    /// inner header.
    #[must_use]
    pub fn transport_at(&self) -> usize {
        match &self.outer {
            None => self.own_transport_at(),
            Some(outer) => {
                let inner = Self { link: LinkKind::Ethernet, outer: None, ..self.clone() };
                outer.bytes(self.link) + inner.own_transport_at()
            }
        }
    }

    fn own_transport_at(&self) -> usize {
        let link = match self.link {
            LinkKind::Ethernet => 14 + 4 * self.tags.len(),
            LinkKind::RawIp => 0,
        };
        let fragment = if self.fragment.is_some() { 8 } else { 0 };
        let extensions: usize = self.extensions.iter().map(|(_, body)| body.len() + 2).sum();
        let network = if self.v6 { 40 + extensions + fragment } else { 20 + self.ip_options.len() };
        link + network
    }

    fn write_link(&self, out: &mut Vec<u8>) {
        if self.link == LinkKind::RawIp {
            return;
        }
        let mut addresses = MAC_ADDRESSES;
        self.turn(&mut addresses);
        out.extend_from_slice(&addresses);
        for (tpid, tci) in &self.tags {
            out.extend_from_slice(&tpid.to_be_bytes());
            out.extend_from_slice(&tci.to_be_bytes());
        }
        let ethertype: u16 = match (self.body, self.v6) {
            (Body::Arp, _) => 0x0806,
            (_, false) => 0x0800,
            (_, true) => 0x86dd,
        };
        out.extend_from_slice(&ethertype.to_be_bytes());
    }

    /// Swaps source and destination if the packet is a reply.
    fn turn(&self, addresses: &mut [u8]) {
        if self.is_reply {
            addresses.rotate_left(addresses.len() / 2);
        }
    }

    fn protocol_number(&self) -> u8 {
        let own = if self.body == Body::Udp { UDP } else { TCP };
        self.protocol.unwrap_or(own)
    }

    fn write_v4(&self, out: &mut Vec<u8>) {
        let [_, b, c, d] = self.host.to_be_bytes();
        let mut addresses = [10, b, c, d, 192, 168, 0, 1];
        self.turn(&mut addresses);
        let segment = self.segment(&addresses);
        let words = 5 + self.ip_options.len() / 4;
        let total = (words * 4 + segment.len()) as i32 + self.length_lie;
        let (offset, more) = self.fragment.unwrap_or((0, false));
        let bits = u16::from(self.reserved_bit) << 15
            | u16::from(self.dont_fragment) << 14
            | u16::from(more) << 13
            | offset & 0x1fff;
        let claimed_words = (words as i8 + self.header_lie) as u8 & 0x0f;
        let mut header = vec![0x40 | claimed_words, self.traffic_class];
        header.extend_from_slice(&(total as u16).to_be_bytes());
        header.extend_from_slice(&self.id.to_be_bytes());
        header.extend_from_slice(&bits.to_be_bytes());
        header.extend_from_slice(&[self.hop_limit, self.protocol_number(), 0, 0]);
        header.extend_from_slice(&addresses);
        header.extend_from_slice(&self.ip_options);
        let checksum = naive::internet_checksum(&header).wrapping_add(self.ip_checksum_error);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(&segment);
    }

    fn write_v6(&self, out: &mut Vec<u8>) {
        let mut addresses = [0; 32];
        addresses[..2].copy_from_slice(&[0xfd, 1]);
        addresses[12..16].copy_from_slice(&self.host.to_be_bytes());
        addresses[16..18].copy_from_slice(&[0xfd, 2]);
        addresses[31] = 1;
        self.turn(&mut addresses);
        let segment = self.segment(&addresses);
        let (first, chain) = self.extension_chain();
        let length = (chain.len() + segment.len()) as i32 + self.length_lie;
        let word = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        out.extend_from_slice(&word.to_be_bytes());
        out.extend_from_slice(&(length as u16).to_be_bytes());
        out.extend_from_slice(&[first, self.hop_limit]);
        out.extend_from_slice(&addresses);
        out.extend_from_slice(&chain);
        out.extend_from_slice(&segment);
    }

    /// Returns the type of the first header after the fixed one, and the bytes of all extension headers.
    fn extension_chain(&self) -> (u8, Vec<u8>) {
        let mut bodies = self.extensions.clone();
        if let Some((offset, more)) = self.fragment {
            let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
            let [id_high, id_low] = self.id.to_be_bytes();
            bodies.push((FRAGMENT, vec![high, low, 0, 0, id_high, id_low]));
        }
        let mut chain = Vec::new();
        for (index, (kind, body)) in bodies.iter().enumerate() {
            let next = bodies.get(index + 1).map_or(self.protocol_number(), |(kind, _)| *kind);
            let units = if *kind == FRAGMENT { 0 } else { (body.len() + 2) / 8 - 1 };
            chain.extend_from_slice(&[next, units as u8]);
            chain.extend_from_slice(body);
        }
        (bodies.first().map_or(self.protocol_number(), |(kind, _)| *kind), chain)
    }

    /// Returns transport header and payload, with the checksum in the form of the frame's checksum status.
    fn segment(&self, addresses: &[u8]) -> Vec<u8> {
        let (mut segment, field) = match self.body {
            Body::Udp => (self.udp_header(), 6),
            Body::Tcp | Body::Arp => (self.tcp_header(), 16),
        };
        payload::append(&mut segment, self.stream, self.seq, self.len);
        let checksum = match self.status {
            ChecksumStatus::Partial { .. } => {
                naive::pseudo_header_sum(addresses, self.protocol_number(), segment.len())
            }
            _ => naive::transport_checksum(addresses, self.protocol_number(), &segment),
        };
        // A UDP checksum of 0 means that there is none (RFC 768).
        let checksum = if self.body == Body::Udp && checksum == 0 { 0xffff } else { checksum };
        let checksum = match self.has_no_checksum && self.body == Body::Udp {
            true => 0,
            false => checksum.wrapping_add(self.checksum_error),
        };
        segment[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        segment
    }

    fn tcp_header(&self) -> Vec<u8> {
        let mut options = self.tcp_options.clone();
        options.resize(options.len().next_multiple_of(4), 0);
        let words = (5 + options.len() / 4) as i8 + self.offset_lie;
        let mut header = Vec::with_capacity(60 + self.len);
        let mut ports = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat();
        self.turn(&mut ports);
        header.extend_from_slice(&ports);
        header.extend_from_slice(&self.seq.to_be_bytes());
        header.extend_from_slice(&self.ack.to_be_bytes());
        header.extend_from_slice(&((words as u16) << 12 | self.flags).to_be_bytes());
        header.extend_from_slice(&self.window.to_be_bytes());
        header.extend_from_slice(&[0, 0]);
        header.extend_from_slice(&self.urgent.to_be_bytes());
        header.extend_from_slice(&options);
        header
    }

    fn udp_header(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(8 + self.len);
        let mut ports = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat();
        self.turn(&mut ports);
        header.extend_from_slice(&ports);
        let length = ((8 + self.len) as u16).wrapping_add_signed(self.udp_length_lie);
        header.extend_from_slice(&length.to_be_bytes());
        header.extend_from_slice(&[0, 0]);
        header
    }
}

fn arp_request() -> [u8; 28] {
    let mut packet = [0; 28];
    packet[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    packet[8..14].copy_from_slice(&MAC_ADDRESSES[6..]);
    packet[14..18].copy_from_slice(&[10, 0, 0, 1]);
    packet[24..].copy_from_slice(&[192, 168, 0, 1]);
    packet
}
