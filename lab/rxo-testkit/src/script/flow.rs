//! Flows that mostly continue as TCP does, so that arbitrary bytes make traffic that merges.

use rxo_frame::LinkKind;

use crate::{Outer, Packet, geneve, seg, vxlan};

/// The next segment of a flow, if nothing unusual happens.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    number: u32,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) id: u16,
    pub(super) time: u32,
    pub(super) window: u16,
    pub(super) traffic_class: u8,
    pub(super) flags: u16,
    /// TSecr.
    pub(super) echo: u32,
    pub(super) dont_fragment: bool,
    /// A byte of the extension header, if the flow has one.
    pub(super) extension: u8,
    is_udp: bool,
    /// The outer ID, if the flow is inside a tunnel.
    pub(super) outer_id: Option<u16>,
}

impl Flow {
    /// Makes flow `number`. Its form (version, tags, options, ID) follows from the number. Some flows start
    /// shortly before a sequence number wraps, some shortly before the IPv4 header checksum wraps.
    pub(super) fn new(number: u32) -> Self {
        let mut flow = Self::plain(number);
        if number % 8 == 2 {
            flow.id = flow.id.wrapping_add(flow.ip_checksum().wrapping_sub(6));
        }
        flow
    }

    /// Returns the flow with UDP datagrams instead of TCP segments.
    pub(super) fn of_udp(mut self) -> Self {
        self.is_udp = true;
        self
    }

    /// Returns the flow inside a tunnel.
    pub(super) fn in_tunnel(mut self) -> Self {
        self.outer_id = Some(if self.number % 6 == 5 { 0xfffe } else { 40 });
        self
    }

    /// Returns the tunnel around the flow's next segment, whose form follows from the flow's number; `None`
    /// without a tunnel.
    pub(super) fn outer(&self) -> Option<Outer> {
        let (number, id) = (self.number, self.outer_id?);
        let outer = if number % 3 == 2 { geneve().options(&[1, 2, 3, 0]) } else { vxlan() };
        let outer = if number % 5 == 1 { outer.v6() } else { outer };
        let outer = if (number / 2).is_multiple_of(2) { outer.checksum() } else { outer };
        let outer = if number % 7 == 4 { outer.vlan(9) } else { outer };
        let outer = outer.id(if number.is_multiple_of(4) { 3 } else { id }).df(number % 9 != 8);
        Some(outer.network(number / 16))
    }

    fn plain(number: u32) -> Self {
        let wraps = number % 4 == 3;
        Self {
            number,
            seq: if wraps { 0xffff_ff00 } else { 1000 * number },
            ack: if wraps { 0xffff_fffe } else { 7 },
            id: if wraps { 0xfffd } else { 100 },
            time: if wraps { 0xffff_ffff } else { 5 },
            window: 500,
            traffic_class: 0,
            flags: 0x10,
            echo: 77,
            dont_fragment: number % 7 != 6,
            extension: 0,
            is_udp: false,
            outer_id: None,
        }
    }

    /// Returns the IPv4 header checksum of the next segment of usual size; arbitrary for IPv6.
    fn ip_checksum(&self) -> u16 {
        let bytes = self.segment(100, LinkKind::RawIp).bytes();
        u16::from_be_bytes([bytes[10], bytes[11]])
    }

    /// Makes a segment of `len` bytes at the flow's position.
    pub(super) fn segment(&self, len: usize, link: LinkKind) -> Packet {
        let number = self.number;
        let packet = seg().flow(number).seq(self.seq).ack(self.ack).window(self.window).len(len);
        let packet = packet.tos(self.traffic_class).flags(self.flags);
        let packet = if number % 3 == 1 { packet.v6() } else { packet };
        let packet = match number % 12 {
            7 => packet.extension(60, &[1, 4, 0, 0, 0, self.extension]),
            _ => packet,
        };
        let packet = match number % 8 {
            0 | 2 | 5 => packet.ts(self.time, self.echo),
            6 => packet.ts_first(self.time, self.echo),
            _ => packet,
        };
        let packet = match number % 5 {
            3 => packet.vlan(16),
            4 => packet.tag(0x88a8, 1).vlan(16),
            _ => packet,
        };
        let packet = if link == LinkKind::RawIp { packet.raw_ip() } else { packet };
        let packet = if self.is_udp { packet.as_datagram() } else { packet };
        packet.id(if number.is_multiple_of(2) { self.id } else { 9 }).df(self.dont_fragment)
    }

    /// Returns the tag that the device removes from the flow's frames; `None` if there is none.
    pub(super) const fn device_tag(&self) -> Option<u16> {
        if self.number % 8 == 3 { Some(5) } else { None }
    }

    /// Moves the flow forward by `len` bytes.
    pub(super) fn advance(&mut self, len: usize) {
        self.seq = self.seq.wrapping_add(len as u32);
        self.id = self.id.wrapping_add(1);
        self.outer_id = self.outer_id.map(|id| id.wrapping_add(1));
    }
}
