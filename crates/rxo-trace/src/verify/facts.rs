//! The properties of a packet that a comparison of two captures uses.

use core::ops::Range;

use rxo_capture::{LinkType, Record, SharedBytes};
use rxo_wire::tunnel::Tunnel;
use rxo_wire::{FlowKey, Parsed, TcpFlags, TcpSegment, Transport, Unparsed, parse, parse_ip};

use crate::rewrite::note::{BadNote, Restored};
use crate::rewrite::restored;

/// The identity of a packet's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) key: FlowKey,
    pub(super) class: Class,
    pub(super) interface: u32,
}

/// The class of a flow: the protocols that are compared separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Tcp,
    Udp,
    /// Packets that are neither TCP nor UDP, and fragments; one flow for each pair of addresses.
    Ip,
    /// Packets without readable addresses.
    Link,
}

/// The properties of a packet that are compared, in addition to its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Facts {
    /// A TCP segment. Its bytes are the payload.
    Tcp(Segment),
    /// Any other packet, compared as a whole.
    Whole(Whole),
}

impl Facts {
    /// Returns `true` if an aggregate with these properties may contain the segment or datagram `inner` at byte
    /// `offset` of its payload. Also returns the properties that only the inner segment has.
    fn hold(&self, offset: usize, inner: &Self) -> (bool, Option<(Last, TcpFlags)>) {
        match (self, inner) {
            (Self::Tcp(merged), Self::Tcp(part)) => {
                let is_next = part.seq == merged.seq.wrapping_add(offset as u32);
                (is_next && part.steady == merged.steady, Some((part.last, part.ending)))
            }
            (Self::Whole(merged), Self::Whole(part)) => {
                let is_alike = part.traffic_class == merged.traffic_class;
                (is_alike && merged.is_datagram && part.is_datagram, None)
            }
            _ => (false, None),
        }
    }
}

/// The properties of a packet that is not a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) traffic_class: u8,
    pub(super) original_bytes: u32,
    /// `true` for a UDP datagram, or for several datagrams that were coalesced.
    pub(super) is_datagram: bool,
}

/// The properties in a segment's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) seq: u32,
    pub(super) steady: Steady,
    pub(super) last: Last,
    /// The flags PSH and FIN.
    pub(super) ending: TcpFlags,
}

/// The properties that apply to every byte of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steady {
    pub(super) traffic_class: u8,
    pub(super) flags: TcpFlags,
    pub(super) urgent: u16,
}

/// The properties that apply at the end of a segment. An aggregate has the properties of its last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) ack: u32,
    pub(super) window: u16,
    options: [u8; MAX_OPTION_BYTES],
    option_bytes: u8,
}

const OTHER_SEGMENTS: BadNote = BadNote("gives back segments that the packet does not say");

const MAX_OPTION_BYTES: usize = 40;

/// The flags that an aggregate collects from its segments.
pub(super) const ENDING: TcpFlags = TcpFlags::PSH.union(TcpFlags::FIN);

/// The flags that signal congestion.
pub(super) const CONGESTION: TcpFlags = TcpFlags::ECE.union(TcpFlags::CWR).union(TcpFlags::AE);

/// The end of a segment or datagram inside an aggregate, and its properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inner {
    /// The offset in the aggregate's payload, in bytes, at which the segment or datagram ends.
    pub(super) end: usize,
    /// The properties of the segment that ends at this offset, with PSH and FIN; `None` for a datagram.
    pub(super) part: Option<(Last, TcpFlags)>,
}

/// A packet as the comparison of two captures uses it: its flow, its properties and, with a note, its
/// restored segments.
#[derive(Debug)]
pub(super) struct ComparedPacket {
    pub(super) name: Name,
    pub(super) facts: Facts,
    /// The segments or datagrams that the packet's note restores; empty for a packet without a note. The error
    /// is the fault of the note.
    pub(super) inner: Result<Vec<Inner>, BadNote>,
    packet: SharedBytes,
    compared: Range<usize>,
}

impl ComparedPacket {
    /// Parses a record of an interface with link type `link`.
    pub(super) fn read(record: &Record, link: LinkType) -> Self {
        let Some(network) = link.network(&record.bytes) else { return Self::unread(record, None) };
        let parsed = network.link.read(network.packet.as_ref(), parse, parse_ip);
        let vlan = network.vlan.map(|tag| tag.tci & 0x0fff);
        let on_vlan = |key: FlowKey| vlan.map_or(key, |vlan| key.on_device_vlan(vlan));
        let mut seen = match parsed {
            Ok(parsed) => {
                let parsed = Parsed { key: on_vlan(parsed.key), ..parsed };
                Self::parsed(record.interface, network.packet, &parsed)
            }
            Err(Unparsed { addresses, .. }) => Self::unread(record, addresses.map(on_vlan)),
        };
        if let Some(restored) = restored(record) {
            seen.inner = restored.and_then(|restored| seen.segments(record, link, &restored));
        }
        seen
    }

    /// Restores the segments or datagrams of an aggregate from its note. The segments must follow one another
    /// in the aggregate's flow, and match the aggregate.
    ///
    /// # Errors
    /// The fault of the note.
    fn segments(
        &self,
        record: &Record,
        link: LinkType,
        restored: &[Restored],
    ) -> Result<Vec<Inner>, BadNote> {
        let mut end = 0;
        let one = |restored: &Restored| {
            let record = Record {
                bytes: restored.bytes.clone(),
                original_bytes: restored.original_bytes,
                interface: record.interface,
                ..Record::default()
            };
            let seen = Self::read(&record, link);
            let (fits, part) = self.facts.hold(end, &seen.facts);
            end += seen.bytes().len();
            let is_ours = fits && seen.name == self.name;
            if is_ours { Ok(Inner { end, part }) } else { Err(OTHER_SEGMENTS) }
        };
        restored.iter().map(one).collect()
    }

    /// Returns the bytes to compare.
    pub(super) fn bytes(&self) -> &[u8] {
        self.packet.as_ref().get(self.compared.clone()).unwrap_or_default()
    }

    fn parsed(interface: u32, packet: SharedBytes, parsed: &Parsed) -> Self {
        // TCP inside a tunnel has a flow of its own, because it may have been coalesced there.
        let inside = segment_inside(packet.as_ref(), parsed);
        let parsed = inside.as_ref().unwrap_or(parsed);
        let (payload, end) = (parsed.at.payload as usize, parsed.at.end as usize);
        let traffic_class = parsed.ip.traffic_class;
        let whole = |from: usize, is_datagram| {
            let original_bytes = (end - from) as u32;
            Facts::Whole(Whole { traffic_class, original_bytes, is_datagram })
        };
        let (class, from, facts) = match &parsed.transport {
            Transport::Tcp(tcp) => {
                let options = packet.as_ref().get(parsed.at.tcp_options()).unwrap_or_default();
                let facts = Facts::Tcp(Segment::new(tcp, traffic_class, options));
                (Class::Tcp, payload, facts)
            }
            Transport::Udp(_) => (Class::Udp, payload, whole(payload, true)),
            Transport::Fragment | Transport::Other(_) => {
                let from = parsed.at.network as usize;
                (Class::Ip, from, whole(from, false))
            }
        };
        let name = Name { key: parsed.key, class, interface };
        Self { name, facts, inner: Ok(Vec::new()), packet, compared: from..end }
    }

    /// Creates a packet from a record that cannot be parsed, for example because it is truncated. All bytes of
    /// the record are compared.
    fn unread(record: &Record, addresses: Option<FlowKey>) -> Self {
        let class = if addresses.is_some() { Class::Ip } else { Class::Link };
        let key = addresses.unwrap_or(FlowKey::NONE);
        let original_bytes = record.original_bytes;
        let whole = Whole { traffic_class: 0, original_bytes, is_datagram: false };
        Self {
            name: Name { key, class, interface: record.interface },
            facts: Facts::Whole(whole),
            inner: Ok(Vec::new()),
            packet: record.bytes.clone(),
            compared: 0..record.bytes.as_ref().len(),
        }
    }
}

/// Returns the TCP segment inside a packet of a tunnel; `None` unless the packet contains one segment and
/// nothing after it.
fn segment_inside(packet: &[u8], outer: &Parsed) -> Option<Parsed> {
    let Transport::Udp(udp) = outer.transport else { return None };
    let inside = Tunnel::of_port(outer.key.destination_port())?.inside(packet, outer)?.parsed;
    let fits = inside.at.end == outer.at.end && u32::from(udp.length) == outer.at.segment_bytes();
    (fits && matches!(inside.transport, Transport::Tcp(_))).then_some(inside)
}

impl Segment {
    fn new(tcp: &TcpSegment, traffic_class: u8, option_bytes: &[u8]) -> Self {
        let mut options = [0; MAX_OPTION_BYTES];
        options.iter_mut().zip(option_bytes).for_each(|(to, byte)| *to = *byte);
        let last = Last {
            ack: tcp.ack.0,
            window: tcp.window,
            options,
            option_bytes: option_bytes.len() as u8,
        };
        Self {
            seq: tcp.seq.0,
            steady: Steady { traffic_class, flags: tcp.flags.without(ENDING), urgent: tcp.urgent },
            last,
            ending: TcpFlags::from_bits(tcp.flags.bits() & ENDING.bits()),
        }
    }
}

impl Last {
    /// Returns the options in the header.
    pub(super) fn options(&self) -> &[u8] {
        self.options.get(..usize::from(self.option_bytes)).unwrap_or_default()
    }
}
