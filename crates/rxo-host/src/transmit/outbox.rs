//! The batch that is being put together.

use std::net::IpAddr;
use std::num::NonZeroU16;

use rxo_ack::{AckNumbers, AckSlot, AckTemplate, IdRule};
use rxo_device::{DeviceError, FrameSink, SinkCapabilities};
use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, Instant, LinkKind, Offload};
use rxo_tcp::{Connection, Transmit};
use rxo_wire::build::{BuildError, EthernetHeader, Ipv4Header, Ipv6Header};
use rxo_wire::checksum::{Sum, Summer, pseudo_header};
use rxo_wire::tcp::Timestamp;
use rxo_wire::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, SeqNumber};

use super::packet::Packet;
use crate::buffer::Buffer;
use crate::stages::{Stage, Stopwatch};

/// What all packets of the device have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) link: LinkKind,
    /// This host's own.
    mac: [u8; 6],
    pub(crate) completes_checksums: bool,
    pub(crate) ack_templates: bool,
    pub(crate) summer: Summer,
}

impl Shape {
    pub(crate) fn new(sink: SinkCapabilities, mac: [u8; 6], ack_templates: bool) -> Self {
        let SinkCapabilities { link, completes_checksums, .. } = sink;
        Self { link, mac, completes_checksums, ack_templates, summer: Summer::detect() }
    }
}

/// Where packets of one connection go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) pair: FlowKey,
    /// The neighbour that gets them; means nothing without Ethernet.
    pub(crate) neighbour: [u8; 6],
}

/// A batch in the making.
#[derive(Debug)]
pub(crate) struct Outbox {
    shape: Shape,
    arena: Vec<u8>,
    packets: Vec<Planned>,
    /// Some text is not in the arena.
    has_borrowed: bool,
    slots: Vec<AckSlot>,
    numbers: Vec<AckNumbers>,
    /// Packets given to the device so far; a large send is one.
    pub(crate) sent: u64,
    /// The turn's: sending happens inside other stages.
    pub(crate) watch: Stopwatch,
}

#[derive(Clone, Copy, Debug)]
struct Planned {
    /// Where its headers and short text end in the arena; they begin where the one before ends.
    end: usize,
    seq: SeqNumber,
    /// Text that stays in the send buffer.
    borrowed_bytes: u32,
    offload: Offload,
}

impl Outbox {
    pub(crate) fn new(shape: Shape, watch: Stopwatch) -> Self {
        Self {
            shape,
            arena: Vec::with_capacity(MOST_PACKETS * 128),
            packets: Vec::with_capacity(MOST_PACKETS),
            has_borrowed: false,
            slots: Vec::new(),
            numbers: Vec::new(),
            sent: 0,
            watch,
        }
    }

    /// Whether it should go out before more is put in.
    pub(crate) fn is_full(&self) -> bool {
        self.packets.len() >= MOST_PACKETS
    }

    /// Whether it must go out before the connection changes.
    pub(crate) const fn has_borrowed(&self) -> bool {
        self.has_borrowed
    }

    /// Puts in what `transmit` says; `ids` counts the connection's IPv4 identifications.
    pub(crate) fn push(&mut self, path: &Path, transmit: &Transmit<'_>, ids: &mut u16) {
        let start = self.arena.len();
        if self.write(path, transmit, *ids).is_err() {
            // Longer than IP can say, which no setting allows.
            self.arena.truncate(start);
            return;
        }
        *ids = ids.wrapping_add(segments(transmit));
        if !transmit.later_acks.is_empty() {
            self.push_later(path, transmit, start, ids);
        }
    }

    /// Puts in a frame that is complete.
    pub(crate) fn push_frame(&mut self, frame: &[u8]) {
        self.arena.extend_from_slice(frame);
        let offload = Offload { checksum: ChecksumStatus::Verified, ..Offload::default() };
        let (end, seq) = (self.arena.len(), SeqNumber::default());
        self.packets.push(Planned { end, seq, borrowed_bytes: 0, offload });
    }

    /// Sends everything. Text that was borrowed is `connection`'s.
    pub(crate) fn send<O: FrameSink, B: AsRef<[u8]>>(
        &mut self,
        sink: &mut O,
        connection: Option<&Connection<Buffer<B>>>,
    ) -> Result<(), DeviceError> {
        if self.packets.is_empty() {
            return Ok(());
        }
        let (arena, mut start) = (&self.arena, 0);
        let batch = self.packets.iter().map(|planned| {
            let head = arena.get(start..planned.end).unwrap_or_default();
            start = planned.end;
            let text = match (connection, planned.borrowed_bytes) {
                (Some(connection), 1..) => {
                    connection.sent_text(planned.seq, planned.borrowed_bytes)
                }
                _ => [&[][..]; 2],
            };
            Packet { head, text, offload: planned.offload }
        });
        self.watch.switch(Stage::Transmit);
        let outcome = sink.transmit(batch);
        self.watch.switch(Stage::Serve);
        self.sent += self.packets.len() as u64;
        self.packets.clear();
        self.arena.clear();
        self.has_borrowed = false;
        outcome
    }

    fn write(&mut self, path: &Path, transmit: &Transmit<'_>, id: u16) -> Result<(), BuildError> {
        let tcp = transmit.header(&path.pair);
        let text_bytes = transmit.payload_bytes();
        let is_short = text_bytes <= MOST_COPIED_BYTES;
        let start = self.arena.len();
        self.arena.resize(start + MOST_HEADERS_BYTES, 0);
        let ip = Ip { bytes: tcp.bytes() + text_bytes, class: transmit.ecn.bits(), id };
        let out = self.arena.get_mut(start..).unwrap_or_default();
        let network = self.shape.link_bytes();
        let rest = self.shape.write_link(path, out)?;
        let rest = ip.write(&path.pair, rest)?;
        tcp.write(rest)?;
        let transport = network + ip_header_bytes(&path.pair);
        let header_bytes = transport + tcp.bytes();
        self.arena.truncate(start + header_bytes);
        if is_short {
            transmit.payload.iter().for_each(|piece| self.arena.extend_from_slice(piece));
        } else {
            self.has_borrowed = true;
        }
        let checksum = self.checksum(&path.pair, transmit, start + transport);
        let kind = if is_v4(&path.pair) { GsoKind::TcpV4 } else { GsoKind::TcpV6 };
        let gso = transmit.gso_size.map(|size| Gso { kind, ecn: false, size });
        self.packets.push(Planned {
            end: self.arena.len(),
            seq: transmit.seq,
            borrowed_bytes: if is_short { 0 } else { text_bytes as u32 },
            offload: Offload {
                checksum: checksum.into_status(transport),
                gso,
                header_bytes: header_bytes as u16,
            },
        });
        Ok(())
    }

    /// Writes seed or checksum into the segment that begins at `at` in the arena.
    fn checksum(&mut self, pair: &FlowKey, transmit: &Transmit<'_>, at: usize) -> Written {
        let segment = self.arena.get_mut(at..).unwrap_or_default();
        let header = transmit.header(pair).bytes();
        let pseudo = pseudo_header(pair, TCP, (header + transmit.payload_bytes()) as u32);
        let is_seed = self.shape.completes_checksums;
        let value = if is_seed {
            pseudo.fold()
        } else {
            let summer = self.shape.summer;
            let text = text_sum(transmit.payload, summer);
            (pseudo + summer.sum(segment.get(..header).unwrap_or_default()) + text).checksum()
        };
        if let Some(field) = segment.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2) {
            field.copy_from_slice(&value.to_be_bytes());
        }
        if is_seed { Written::Seed } else { Written::Whole }
    }

    /// The acknowledgements after the first, which begins at `start` in the arena.
    fn push_later(&mut self, path: &Path, transmit: &Transmit<'_>, start: usize, ids: &mut u16) {
        self.numbers.clear();
        let timestamp = timestamp_of(transmit);
        self.numbers.extend(transmit.later_acks.iter().map(|owed| AckNumbers {
            ack: owed.ack,
            window: owed.window,
            timestamp,
        }));
        if !self.shape.ack_templates || self.expand(start).is_none() {
            self.write_each(path, transmit, ids);
            return;
        }
        *ids = ids.wrapping_add(self.numbers.len() as u16);
    }

    /// Expands the template whose first is the last packet; `None` when it is no template.
    fn expand(&mut self, start: usize) -> Option<()> {
        let offload = self.packets.last()?.offload;
        let first = self.arena.get(start..)?;
        let frame = Frame { checksum: offload.checksum, ..Frame::new(first, Instant::ZERO) };
        let template =
            AckTemplate::new(frame, self.shape.link, &self.numbers, IdRule::Increment).ok()?;
        self.slots.resize(self.slots.len().max(template.count()), AckSlot::EMPTY);
        let expanded = template.expand(&mut self.slots).ok()?;
        let seq = SeqNumber::default();
        for later in expanded.iter().skip(1) {
            self.arena.extend_from_slice(later.bytes);
            self.packets.push(Planned { end: self.arena.len(), seq, borrowed_bytes: 0, offload });
        }
        Some(())
    }

    /// The same without a template, one by one.
    fn write_each(&mut self, path: &Path, transmit: &Transmit<'_>, ids: &mut u16) {
        for index in 0..self.numbers.len() {
            let AckNumbers { ack, window, .. } = self.numbers[index];
            let one = Transmit { ack, window, later_acks: &[], ..*transmit };
            if self.write(path, &one, *ids).is_ok() {
                *ids = ids.wrapping_add(1);
            }
        }
    }
}

impl Shape {
    const fn link_bytes(&self) -> usize {
        match self.link {
            LinkKind::Ethernet => rxo_wire::ETHERNET_HEADER_BYTES,
            LinkKind::RawIp => 0,
        }
    }

    fn write_link<'o>(&self, path: &Path, out: &'o mut [u8]) -> Result<&'o mut [u8], BuildError> {
        if self.link == LinkKind::RawIp {
            return Ok(out);
        }
        let ethertype = if is_v4(&path.pair) { ETHERTYPE_IPV4 } else { ETHERTYPE_IPV6 };
        let (destination, source) = (path.neighbour, self.mac);
        EthernetHeader { destination, source, tags: &[], ethertype }.write(out)
    }
}

/// An IP header's changing fields.
struct Ip {
    /// What follows the header.
    bytes: usize,
    class: u8,
    id: u16,
}

impl Ip {
    fn write<'o>(&self, pair: &FlowKey, out: &'o mut [u8]) -> Result<&'o mut [u8], BuildError> {
        match (pair.source(), pair.destination()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Ipv4Header {
                source,
                destination,
                protocol: TCP,
                traffic_class: self.class,
                id: self.id,
                payload_bytes: self.bytes,
                ..Ipv4Header::default()
            }
            .write(out),
            (source, destination) => Ipv6Header {
                source: to_v6(source),
                destination: to_v6(destination),
                next_header: TCP,
                traffic_class: self.class,
                payload_bytes: self.bytes,
                ..Ipv6Header::default()
            }
            .write(out),
        }
    }
}

/// How a checksum was written.
#[derive(Clone, Copy)]
enum Written {
    Seed,
    Whole,
}

impl Written {
    const fn into_status(self, transport: usize) -> ChecksumStatus {
        match self {
            Self::Seed => {
                ChecksumStatus::Partial { start: transport as u16, offset: CHECKSUM_AT as u16 }
            }
            Self::Whole => ChecksumStatus::Verified,
        }
    }
}

fn text_sum(payload: [&[u8]; 2], summer: Summer) -> Sum {
    let [first, second] = payload;
    summer.sum(first) + summer.sum(second).at(first.len())
}

/// The timestamp of a bare acknowledgement: its only option, if it has one.
fn timestamp_of(transmit: &Transmit<'_>) -> Timestamp {
    match transmit.options.as_slice() {
        [1, 1, 8, 10, a, b, c, d, e, f, g, h] => Timestamp {
            value: u32::from_be_bytes([*a, *b, *c, *d]),
            echo: u32::from_be_bytes([*e, *f, *g, *h]),
        },
        _ => Timestamp::default(),
    }
}

fn segments(transmit: &Transmit<'_>) -> u16 {
    let size = transmit.gso_size.map_or(usize::MAX, |size| usize::from(NonZeroU16::get(size)));
    transmit.payload_bytes().div_ceil(size).max(1) as u16
}

fn is_v4(pair: &FlowKey) -> bool {
    pair.source().is_ipv4()
}

fn ip_header_bytes(pair: &FlowKey) -> usize {
    if is_v4(pair) { 20 } else { 40 }
}

fn to_v6(address: IpAddr) -> std::net::Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

const TCP: u8 = 6;
const CHECKSUM_AT: usize = 16;
/// Ethernet, IPv6, TCP with all its options.
const MOST_HEADERS_BYTES: usize = 14 + 40 + 60;
/// Texts up to this are copied, so that packets of many connections leave together.
const MOST_COPIED_BYTES: usize = 512;
const MOST_PACKETS: usize = 256;
