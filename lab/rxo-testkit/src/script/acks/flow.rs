//! Makes the ACKs of a data receiver.

use rxo_frame::LinkKind;

use crate::{Packet, seg};

const SEGMENT_BYTES: u32 = 1448;

/// The next acknowledgement of a flow, and the form of all its ACKs.
#[derive(Clone, Debug)]
pub(super) struct AckFlow {
    number: u32,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) window: u16,
    /// TSval and TSecr.
    pub(super) time: (u32, u32),
    /// ECE, CWR and AE, as set in the next ACK.
    pub(super) marks: u16,
    pub(super) traffic_class: u8,
    /// Segments beyond `ack` that arrived out of order, after a missing one.
    pub(super) beyond: u32,
    pub(super) arrangement: u8,
    pub(super) padding: Option<u8>,
    pub(super) extension: u8,
    id: u16,
}

impl AckFlow {
    /// Makes flow `number`. IP version, timestamp, tags and direction follow from the number. The
    /// sequence numbers of some flows start shortly before they wrap.
    pub(super) fn new(number: u32) -> Self {
        let wraps = number % 4 == 1;
        Self {
            number,
            seq: if wraps { 0xffff_ff00 } else { 5000 * number },
            ack: if wraps { 0xffff_e000 } else { 7 },
            window: 500,
            time: if wraps { (0xffff_fffd, 0xffff_fffd) } else { (9, 50) },
            marks: 0,
            traffic_class: 0,
            beyond: 0,
            arrangement: [1, 1, 0, 1, 2, 1][number as usize % 6],
            padding: Some(0),
            extension: 0,
            id: 30,
        }
    }

    /// Makes a segment of `len` bytes with the flow's current numbers.
    pub(super) fn segment(&mut self, len: usize, link: LinkKind) -> Packet {
        let number = self.number;
        let packet = seg().flow(number).seq(self.seq).ack(self.ack).window(self.window).len(len);
        // Flows with odd numbers go the other way between the same hosts.
        let port = 1000 + number as u16;
        let packet = if number % 2 == 1 { packet.ports(443, port - 1) } else { packet };
        let packet = if number % 3 == 2 { packet.v6() } else { packet };
        let packet = packet.flags(0x10 | self.marks).tos(self.traffic_class);
        let packet = match number % 12 {
            5 => packet.extension(60, &[1, 4, 0, 0, 0, self.extension]),
            _ => packet,
        };
        let packet = match number % 5 {
            3 => packet.vlan(16),
            4 => packet.tag(0x88a8, 1).vlan(16),
            _ => packet,
        };
        let packet = match (self.padding, len, link) {
            (Some(byte), 0, LinkKind::Ethernet) => packet.padded_with(byte),
            _ => packet,
        };
        self.id = self.id.wrapping_add(u16::from(!number.is_multiple_of(5)));
        let packet = packet.id(self.id).df(number % 7 != 6);
        let packet = self.arranged(packet);
        if link == LinkKind::RawIp { packet.raw_ip() } else { packet }
    }

    fn arranged(&self, packet: Packet) -> Packet {
        let (value, echo) = self.time;
        match self.arrangement {
            1 => packet.ts(value, echo),
            2 => packet.ts_first(value, echo),
            3 => packet.ts_in_the_middle(value, echo),
            4 => packet.bare_timestamp(value, echo),
            _ => packet,
        }
    }

    /// Acknowledges `segments` more segments.
    pub(super) fn advance(&mut self, segments: u32) {
        self.ack = self.ack.wrapping_add(segments * SEGMENT_BYTES);
        self.beyond = self.beyond.saturating_sub(segments + 1);
        self.time.1 = self.time.1.wrapping_add(1);
    }

    /// Returns the tag that the device removes from the flow's frames; `None` if there is none.
    pub(super) const fn device_tag(&self) -> Option<u16> {
        if self.number % 8 == 3 { Some(5) } else { None }
    }

    /// Returns the SACK block of the data that arrived out of order.
    pub(super) const fn block(&self) -> (u32, u32) {
        let left = self.place(1);
        (left, left.wrapping_add(self.beyond * SEGMENT_BYTES))
    }

    /// Returns the sequence number `segments` segments beyond the acknowledged data.
    pub(super) const fn place(&self, segments: u32) -> u32 {
        self.ack.wrapping_add(segments.wrapping_mul(SEGMENT_BYTES))
    }
}
