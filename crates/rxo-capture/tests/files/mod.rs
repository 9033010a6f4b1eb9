//! Makes capture files byte by byte, without using the code under test.
//!
//! Used by the tests of captures and for the corpus of the fuzz targets; each needs only a part.
#![allow(dead_code, reason = "every user needs a part")]

/// The byte order of a machine that wrote a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

pub(crate) const ORDERS: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    pub(crate) fn u16(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    pub(crate) fn u32(self, number: u32) -> [u8; 4] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    pub(crate) fn u64(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}

pub(crate) const MICROS: u32 = 0xa1b2_c3d4;
pub(crate) const NANOS: u32 = 0xa1b2_3c4d;
pub(crate) const MODIFIED: u32 = 0xa1b2_cd34;

/// A pcap file.
#[derive(Clone, Debug)]
pub(crate) struct PcapFile {
    pub(crate) order: Order,
    is_modified: bool,
    pub(crate) bytes: Vec<u8>,
}

impl PcapFile {
    pub(crate) fn new(order: Order, magic: u32) -> Self {
        Self::with(order, magic, (2, 4), 65_535, 1)
    }

    pub(crate) fn with(
        order: Order,
        magic: u32,
        version: (u16, u16),
        snap_bytes: u32,
        link: u32,
    ) -> Self {
        let mut bytes = order.u32(magic).to_vec();
        bytes.extend(order.u16(version.0));
        bytes.extend(order.u16(version.1));
        bytes.extend([0; 8]);
        bytes.extend(order.u32(snap_bytes));
        bytes.extend(order.u32(link));
        Self { order, is_modified: magic == MODIFIED, bytes }
    }

    /// Adds a record whose lengths may be wrong.
    pub(crate) fn claiming(mut self, time: [u32; 2], lengths: [u32; 2], packet: &[u8]) -> Self {
        for number in [time[0], time[1], lengths[0], lengths[1]] {
            self.bytes.extend(self.order.u32(number));
        }
        if self.is_modified {
            self.bytes.extend([0xee; 8]);
        }
        self.bytes.extend(packet);
        self
    }

    pub(crate) fn record(self, time: [u32; 2], packet: &[u8]) -> Self {
        let length = packet.len() as u32;
        self.claiming(time, [length, length], packet)
    }
}

/// A pcapng file. Invalid blocks can be added.
#[derive(Clone, Debug, Default)]
pub(crate) struct PcapNgFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_big: bool,
}

/// The interface options that define its clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) resolution: Option<u8>,
    pub(crate) offset_s: Option<i64>,
}

impl PcapNgFile {
    fn order(&self) -> Order {
        if self.is_big { Order::Big } else { Order::Little }
    }

    /// Begins a section in `order`, without a length.
    pub(crate) fn section(mut self, order: Order) -> Self {
        self.is_big = order == Order::Big;
        let mut body = order.u32(0x1a2b_3c4d).to_vec();
        body.extend(order.u16(1));
        body.extend(order.u16(0));
        body.extend(order.u64(u64::MAX));
        self.block(0x0a0d_0d0a, &body)
    }

    pub(crate) fn interface(self, link: u16, snap_bytes: u32, name: &str, clock: Clock) -> Self {
        let order = self.order();
        let mut body = order.u16(link).to_vec();
        body.extend([0, 0]);
        body.extend(order.u32(snap_bytes));
        if !name.is_empty() {
            body.extend(option(order, 2, name.as_bytes()));
        }
        if let Some(resolution) = clock.resolution {
            body.extend(option(order, 9, &[resolution]));
        }
        if let Some(offset_s) = clock.offset_s {
            body.extend(option(order, 14, &order.u64(offset_s as u64)));
        }
        self.block(1, &body)
    }

    /// Adds an enhanced packet block. `options` are already encoded.
    pub(crate) fn enhanced(
        self,
        interface: u32,
        ticks: u64,
        original_bytes: u32,
        packet: &[u8],
        options: &[u8],
    ) -> Self {
        let order = self.order();
        let start = order.u32(interface);
        self.timed(6, start, ticks, original_bytes, packet, options)
    }

    /// Adds an obsolete packet block: a 16-bit interface, and a count of drops.
    pub(crate) fn obsolete(self, interface: u16, ticks: u64, packet: &[u8]) -> Self {
        let order = self.order();
        let [a, b] = order.u16(interface);
        let length = packet.len() as u32;
        self.timed(2, [a, b, 0xff, 0xff], ticks, length, packet, &[])
    }

    fn timed(
        self,
        kind: u32,
        start: [u8; 4],
        ticks: u64,
        original_bytes: u32,
        packet: &[u8],
        options: &[u8],
    ) -> Self {
        let order = self.order();
        let mut body = start.to_vec();
        body.extend(order.u32((ticks >> 32) as u32));
        body.extend(order.u32(ticks as u32));
        body.extend(order.u32(packet.len() as u32));
        body.extend(order.u32(original_bytes));
        body.extend(padded(packet));
        body.extend(options);
        self.block(kind, &body)
    }

    /// Adds a simple packet block.
    pub(crate) fn simple(self, original_bytes: u32, packet: &[u8]) -> Self {
        let mut body = self.order().u32(original_bytes).to_vec();
        body.extend(padded(packet));
        self.block(3, &body)
    }

    /// Adds a block of any type.
    pub(crate) fn block(self, kind: u32, body: &[u8]) -> Self {
        let length = body.len() as u32 + 12;
        self.claiming(kind, [length, length], body)
    }

    /// Adds a block whose lengths may be wrong.
    pub(crate) fn claiming(mut self, kind: u32, lengths: [u32; 2], body: &[u8]) -> Self {
        let order = self.order();
        self.bytes.extend(order.u32(kind));
        self.bytes.extend(order.u32(lengths[0]));
        self.bytes.extend(body);
        self.bytes.extend(order.u32(lengths[1]));
        self
    }
}

/// Encodes an option with padding.
pub(crate) fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = order.u16(code).to_vec();
    bytes.extend(order.u16(value.len() as u16));
    bytes.extend(padded(value));
    bytes
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}
