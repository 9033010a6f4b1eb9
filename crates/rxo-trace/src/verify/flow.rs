//! Compares one flow of both captures.
//!
//! Data that was read from only one capture waits in a queue. Only one capture can be ahead in a flow: as soon
//! as data is read from the other capture, this data is compared with the front of the queue, for as many bytes
//! as both captures have.

use std::collections::VecDeque;

use rxo_wire::TcpFlags;

use super::facts::{CONGESTION, Facts, Inner, Last, Segment, Steady, Whole};
use super::{Kind, Side};
use crate::rewrite::note::BadNote;
use crate::words::form;

/// A packet that has not been compared completely yet.
#[derive(Debug)]
pub(super) struct Unit<B> {
    /// The number of the packet in its capture, from 1.
    pub(super) packet: u64,
    pub(super) facts: Facts,
    pub(super) bytes: B,
    /// The number of payload bytes of the packet that were compared.
    done: usize,
    /// The segments or datagrams of the packet that its note restores, in reverse order: the last element is
    /// compared next.
    inner: Vec<Inner>,
    /// The payload length of each datagram in bytes, if the packet was found to consist of several datagrams
    /// although it has no note; 0 as long as the packet may be a single datagram.
    datagram_bytes: usize,
}

/// The memory of a waiting packet without its bytes, in bytes. This memory counts against the limit, so that
/// packets without payload are limited, too.
const UNIT_BYTES: usize = size_of::<Unit<Box<[u8]>>>();

impl<B: AsRef<[u8]>> Unit<B> {
    pub(super) fn new(packet: u64, facts: Facts, bytes: B, mut inner: Vec<Inner>) -> Self {
        inner.reverse();
        Self { packet, facts, bytes, done: 0, inner, datagram_bytes: 0 }
    }

    fn rest(&self) -> &[u8] {
        self.bytes.as_ref().get(self.done..).unwrap_or_default()
    }

    /// Returns the bytes of the current segment that are not compared yet; all remaining bytes of the packet if
    /// the end of the segment is unknown.
    fn segment(&self) -> &[u8] {
        let end = self.inner.last().map_or(usize::MAX, |inner| inner.end);
        let rest = self.rest();
        rest.get(..end.saturating_sub(self.done)).unwrap_or(rest)
    }

    /// Returns `true` if a datagram of the packet may end after the next `bytes` bytes. Without a note, all
    /// datagrams of an aggregate are assumed to be as long as the first one; only the last may be shorter.
    fn may_end_after(&self, bytes: usize) -> bool {
        let most = if self.datagram_bytes == 0 { usize::MAX } else { self.datagram_bytes };
        if bytes == self.segment().len() {
            return bytes <= most;
        }
        let is_first = self.datagram_bytes == 0 && bytes > 0;
        self.is_unnoted_datagram() && (is_first || bytes == most)
    }

    /// Returns `true` for a UDP packet without a note. Only the other capture shows whether such a packet is
    /// one datagram or several.
    fn is_unnoted_datagram(&self) -> bool {
        let is_datagram = matches!(self.facts, Facts::Whole(part) if part.is_datagram);
        is_datagram && self.inner.is_empty()
    }

    /// Records that the next datagram of the packet has `bytes` bytes. Returns `true` if the end of that
    /// datagram is not known from the packet itself.
    fn split(&mut self, bytes: usize) -> bool {
        let is_inside = matches!(self.facts, Facts::Whole(_)) && bytes < self.segment().len();
        if is_inside {
            self.datagram_bytes = bytes;
        }
        is_inside
    }

    /// Records that the next `bytes` bytes were compared. Returns the properties of the segment that ends
    /// there; `None` if no segment ends there.
    fn step(&mut self, bytes: usize) -> Option<(Last, TcpFlags)> {
        self.done += bytes;
        if self.inner.last().is_some_and(|inner| inner.end == self.done) {
            return self.inner.pop().and_then(|inner| inner.part);
        }
        match self.facts {
            Facts::Tcp(part) if self.rest().is_empty() => Some((part.last, part.ending)),
            _ => None,
        }
    }

    /// Returns the packet with a separate copy of the bytes that are not compared yet.
    fn kept(self) -> Unit<Box<[u8]>> {
        let Self { packet, facts, bytes, done, inner, datagram_bytes } = self;
        Unit { packet, facts, bytes: bytes.as_ref().into(), done, inner, datagram_bytes }
    }

    /// Returns the memory of the packet, in bytes.
    fn cost(&self) -> usize {
        UNIT_BYTES + self.bytes.as_ref().len() + self.inner.capacity() * size_of::<Inner>()
    }
}

/// One flow: the packets of both captures that are not compared yet. There may be a million flows, so a flow
/// without waiting packets takes only a few bytes.
#[derive(Debug, Default)]
pub(super) struct Flow {
    waiting: Option<Box<Waiting>>,
    /// The number of payload bytes of the flow that were compared.
    offset: u64,
    /// For each capture, the union of the PSH and FIN flags of all packets since the last byte at which packets of both
    /// captures ended.
    packet_ending: [TcpFlags; 2],
    /// For each capture, the union of the PSH and FIN flags of all segments since the last byte at which segments of
    /// both captures ended. Segments whose flags are unknown add nothing.
    segment_ending: [TcpFlags; 2],
}

/// The packets of the capture that is ahead. Their counterparts were not read from the other capture yet.
#[derive(Debug)]
struct Waiting {
    ahead: Side,
    units: VecDeque<Unit<Box<[u8]>>>,
}

/// The totals of a comparison, over all flows.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The number of bytes of each capture that wait for their counterpart.
    pub(super) waiting: [usize; 2],
    /// The number of segments that end at a byte where the properties of the other capture's segment are
    /// unknown.
    pub(super) forgotten_segments: u64,
    /// The last position at which the datagrams of both captures end differently although the captures may be
    /// equal. The caller removes this value; `None` if there is no such position.
    pub(super) undecided: Option<Mismatch>,
}

/// The position at which a flow differs, and the kind of the difference.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) kind: Kind,
    pub(super) stream_offset: u64,
    pub(super) packets: [Option<u64>; 2],
    pub(super) texts: [String; 2],
}

impl Flow {
    /// Returns `true` if no packet of the flow waits for its counterpart, so that forgetting the flow loses
    /// only its offset.
    pub(super) const fn is_level(&self) -> bool {
        self.waiting.is_none()
    }

    /// Returns the capture that is ahead, and the number of its oldest waiting packet; `None` if no packet
    /// waits.
    pub(super) fn oldest(&self) -> Option<(Side, u64)> {
        let waiting = self.waiting.as_deref()?;
        waiting.units.front().map(|unit| (waiting.ahead, unit.packet))
    }

    /// Returns the number of payload bytes of the flow that are equal so far.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Compares a packet of `side` with the waiting packets of the other capture. The part without a counterpart waits.
    pub(super) fn push<B: AsRef<[u8]>>(
        &mut self,
        side: Side,
        mut unit: Unit<B>,
        tally: &mut Tally,
    ) -> Result<(), Mismatch> {
        while let Some(mut waiting) = self.waiting.take_if(|waiting| waiting.ahead != side) {
            let Some(front) = waiting.units.front_mut() else { continue };
            let met = self.compare_with_oldest(front, side, &mut unit, tally);
            if met.is_ok() && front.rest().is_empty() {
                tally.waiting[side.other().index()] -= front.cost();
                waiting.units.pop_front();
            }
            if !waiting.units.is_empty() {
                self.waiting = Some(waiting);
            }
            met?;
            if unit.rest().is_empty() {
                return Ok(());
            }
        }
        tally.waiting[side.index()] += unit.cost();
        let fresh = || Box::new(Waiting { ahead: side, units: VecDeque::with_capacity(1) });
        self.waiting.get_or_insert_with(fresh).units.push_back(unit.kept());
        Ok(())
    }

    /// Compares the current segment of the packet of `side` with the oldest waiting packet, up to the nearest
    /// end of a segment in either packet.
    fn compare_with_oldest<B: AsRef<[u8]>>(
        &mut self,
        front: &mut Unit<Box<[u8]>>,
        side: Side,
        unit: &mut Unit<B>,
        tally: &mut Tally,
    ) -> Result<(), Mismatch> {
        let step = compare(front, unit, self.offset).map_err(|found| found.seen_from(side))?;
        if matches!(unit.facts, Facts::Tcp(_)) {
            self.offset += step as u64;
        } else if !end_together(front, unit, step) {
            let text = |bytes: usize| format!("{}, one datagram or several", sized(bytes));
            let bytes = [front.bytes.len(), unit.bytes.as_ref().len()];
            let found = (Kind::Datagrams, text(bytes[0]), text(bytes[1]));
            tally.undecided = Some(mismatch(front, unit, self.offset, found).seen_from(side));
        }
        tally.forgotten_segments += u64::from(front.split(step) | unit.split(step));
        let parts = [front.step(step), unit.step(step)];
        let found = self.end_of_segments(side, parts, tally);
        let found = found.or_else(|| self.end_of_packets(side, front, unit));
        match found {
            None => Ok(()),
            Some(found) => Err(mismatch(front, unit, self.offset, found).seen_from(side)),
        }
    }

    /// Records the properties at the ends of segments, and compares these properties if both captures contain
    /// them. The pair begins with the capture that is not `side`.
    fn end_of_segments(
        &mut self,
        side: Side,
        parts: [Option<(Last, TcpFlags)>; 2],
        tally: &mut Tally,
    ) -> Option<DifferenceTexts> {
        for (part, side) in parts.iter().zip([side.other(), side]) {
            if let Some((_, ending)) = part {
                let so_far = &mut self.segment_ending[side.index()];
                *so_far = *so_far | *ending;
            }
        }
        let [Some((there, _)), Some((here, _))] = parts else {
            tally.forgotten_segments += u64::from(parts.iter().any(Option::is_some));
            return None;
        };
        let endings = std::mem::take(&mut self.segment_ending);
        last(there, here).or_else(|| ending(endings, side))
    }

    /// Records the properties at the ends of packets, and compares these properties if packets of both captures
    /// end at this byte. Returns the difference; `None` if there is none.
    fn end_of_packets<A: AsRef<[u8]>, B: AsRef<[u8]>>(
        &mut self,
        side: Side,
        front: &Unit<A>,
        unit: &Unit<B>,
    ) -> Option<DifferenceTexts> {
        let (Facts::Tcp(there), Facts::Tcp(here)) = (front.facts, unit.facts) else { return None };
        let (front_ends, unit_ends) = (front.rest().is_empty(), unit.rest().is_empty());
        for (ends, part, side) in [(front_ends, there, side.other()), (unit_ends, here, side)] {
            if ends {
                let so_far = &mut self.packet_ending[side.index()];
                *so_far = *so_far | part.ending;
            }
        }
        if !(front_ends && unit_ends) {
            return None;
        }
        let endings = std::mem::take(&mut self.packet_ending);
        last(there.last, here.last).or_else(|| ending(endings, side))
    }

    /// Returns the mismatch for the first waiting packet, which has no counterpart; `None` if no packet
    /// waits.
    pub(super) fn missing(&self) -> Option<Mismatch> {
        let waiting = self.waiting.as_deref()?;
        let front = waiting.units.front()?;
        let text = match front.facts {
            Facts::Tcp(part) => describe(&part, front),
            Facts::Whole(_) => format!("a packet of {}", sized(front.bytes.len())),
        };
        let found = Mismatch {
            kind: Kind::Missing,
            stream_offset: self.offset,
            packets: [Some(front.packet), None],
            texts: [text, "nothing".to_owned()],
        };
        Some(found.seen_from(waiting.ahead.other()))
    }

    /// Drops the waiting packets of the flow if these packets belong to `side`.
    pub(super) fn clear_of(&mut self, side: Side, tally: &mut Tally) {
        if self.waiting.as_ref().is_some_and(|waiting| waiting.ahead == side) {
            self.clear(tally);
        }
    }

    /// Drops all waiting packets of the flow.
    pub(super) fn clear(&mut self, tally: &mut Tally) {
        if let Some(waiting) = self.waiting.take() {
            let bytes: usize = waiting.units.iter().map(Unit::cost).sum();
            tally.waiting[waiting.ahead.index()] -= bytes;
        }
    }
}

impl Mismatch {
    /// Returns the mismatch for a packet of `side` whose note does not match the packet.
    pub(super) fn bad_note(side: Side, packet: u64, stream_offset: u64, why: BadNote) -> Self {
        let texts = ["a packet".to_owned(), why.to_string()];
        let packets = [None, Some(packet)];
        Self { kind: Kind::Note, stream_offset, packets, texts }.seen_from(side)
    }

    /// Returns the mismatch with its pairs in the order of the captures. On entry, each pair begins with the
    /// capture that is not `side`.
    fn seen_from(mut self, side: Side) -> Self {
        if side == Side::A {
            self.packets.reverse();
            self.texts.reverse();
        }
        self
    }
}

/// The kind of a difference, and its description for each capture.
type DifferenceTexts = (Kind, String, String);

fn mismatch<A, B>(
    a: &Unit<A>,
    b: &Unit<B>,
    stream_offset: u64,
    found: DifferenceTexts,
) -> Mismatch {
    let (kind, of_a, of_b) = found;
    let packets = [Some(a.packet), Some(b.packet)];
    Mismatch { kind, stream_offset, packets, texts: [of_a, of_b] }
}

/// Compares the bytes that both packets contain, and the properties of the packets. Returns the number of
/// compared bytes, or the difference.
fn compare<A: AsRef<[u8]>, B: AsRef<[u8]>>(
    a: &Unit<A>,
    b: &Unit<B>,
    offset: u64,
) -> Result<usize, Mismatch> {
    match (a.facts, b.facts) {
        (Facts::Tcp(a_part), Facts::Tcp(b_part)) => segments(a, &a_part, b, &b_part, offset),
        (Facts::Whole(a_part), Facts::Whole(b_part)) => {
            wholes(a, a_part, b, b_part).map_err(|found| mismatch(a, b, offset, found))
        }
        // Unreachable: the class is part of a flow's name, so both packets have the same one.
        _ => Err(mismatch(a, b, offset, (Kind::Packet, String::new(), String::new()))),
    }
}

fn segments<A: AsRef<[u8]>, B: AsRef<[u8]>>(
    a: &Unit<A>,
    a_part: &Segment,
    b: &Unit<B>,
    b_part: &Segment,
    offset: u64,
) -> Result<usize, Mismatch> {
    let (a_rest, b_rest) = (a.segment(), b.segment());
    let at = |found| mismatch(a, b, offset, found);
    let seq = |part: &Segment, done: usize| part.seq.wrapping_add(done as u32);
    if a_rest.is_empty() != b_rest.is_empty() {
        return Err(at((Kind::Order, describe(a_part, a), describe(b_part, b))));
    }
    if seq(a_part, a.done) != seq(b_part, b.done) {
        return Err(at((Kind::Sequence, describe(a_part, a), describe(b_part, b))));
    }
    if let Some(found) = steady(a_part.steady, b_part.steady) {
        return Err(at(found));
    }
    let step = a_rest.len().min(b_rest.len());
    match a_rest.iter().zip(b_rest).position(|(a, b)| a != b) {
        None => Ok(step),
        Some(place) => {
            let text = |rest: &[u8]| format!("byte {:#04x}", rest.get(place).unwrap_or(&0));
            let found = (Kind::Payload, text(a_rest), text(b_rest));
            Err(mismatch(a, b, offset + place as u64, found))
        }
    }
}

/// Describes a segment in words, for readers.
fn describe<B: AsRef<[u8]>>(part: &Segment, unit: &Unit<B>) -> String {
    let seq = part.seq.wrapping_add(unit.done as u32);
    match unit.rest().len() {
        0 => format!("no payload, {:?}, SEQ {seq}", part.steady.flags | part.ending),
        bytes => format!("{} from SEQ {seq}", sized(bytes)),
    }
}

/// Formats a number of bytes with all its digits, without groups: readers compare two of them.
fn sized(bytes: usize) -> String {
    format!("{bytes} {}", form(bytes as u64, "byte", "bytes"))
}

fn steady(a: Steady, b: Steady) -> Option<DifferenceTexts> {
    const ECN_BITS: u8 = 0b11;
    let class = |part: Steady| format!("traffic class {:#04x}", part.traffic_class);
    let flags = |part: Steady| format!("{:?}, urgent pointer {}", part.flags, part.urgent);
    if a == b {
        None
    } else if (a.traffic_class ^ b.traffic_class) & ECN_BITS != 0 {
        Some((Kind::Ecn, class(a), class(b)))
    } else if a.traffic_class != b.traffic_class {
        Some((Kind::TrafficClass, class(a), class(b)))
    } else if (a.flags.bits() ^ b.flags.bits()) & CONGESTION.bits() != 0 {
        Some((Kind::Ecn, flags(a), flags(b)))
    } else {
        Some((Kind::Flags, flags(a), flags(b)))
    }
}

/// Compares the flags that each capture has collected, and returns the difference; `None` if they are equal. The pair
/// begins with the capture that is not `side`.
fn ending(endings: [TcpFlags; 2], side: Side) -> Option<DifferenceTexts> {
    let (there, here) = (endings[side.other().index()], endings[side.index()]);
    (there != here).then(|| (Kind::Flags, format!("{there:?}"), format!("{here:?}")))
}

fn last(a: Last, b: Last) -> Option<DifferenceTexts> {
    if a.ack != b.ack {
        Some((Kind::Acknowledgement, format!("ACK {}", a.ack), format!("ACK {}", b.ack)))
    } else if a.window != b.window {
        Some((Kind::Window, format!("window {}", a.window), format!("window {}", b.window)))
    } else if a.options() != b.options() {
        let text = |part: &Last| format!("options {:02x?}", part.options());
        Some((Kind::Options, text(&a), text(&b)))
    } else {
        None
    }
}

/// Compares two whole packets, or a datagram with the next datagram inside an aggregate. Returns the number of
/// equal bytes, or the difference.
fn wholes<A: AsRef<[u8]>, B: AsRef<[u8]>>(
    a: &Unit<A>,
    a_part: Whole,
    b: &Unit<B>,
    b_part: Whole,
) -> Result<usize, DifferenceTexts> {
    let (a_rest, b_rest) = (a.segment(), b.segment());
    if a_part.traffic_class != b_part.traffic_class {
        let text = |part: Whole| format!("traffic class {:#04x}", part.traffic_class);
        let is_ecn = (a_part.traffic_class ^ b_part.traffic_class) & 0b11 != 0;
        let kind = if is_ecn { Kind::Ecn } else { Kind::TrafficClass };
        return Err((kind, text(a_part), text(b_part)));
    }
    let step = a_rest.len().min(b_rest.len());
    let place = a_rest.iter().zip(b_rest).take_while(|(a, b)| a == b).count();
    let is_one = a_part.is_datagram || a_part.original_bytes == b_part.original_bytes;
    // Each packet may be several datagrams, of a length that fits both captures.
    let is_undecided = a.is_unnoted_datagram() && b.is_unnoted_datagram() && step > 0;
    if is_one && place == step && (end_together(a, b, step) || is_undecided) {
        return Ok(step);
    }
    let text = |bytes: &[u8], part: Whole| match bytes.get(place) {
        Some(byte) => format!("byte {place} is {byte:#04x}"),
        None => format!("{} of {}", sized(bytes.len()), part.original_bytes),
    };
    Err((Kind::Packet, text(a_rest, a_part), text(b_rest, b_part)))
}

/// Returns `true` if datagrams of both packets may end after the next `bytes` bytes.
fn end_together<A: AsRef<[u8]>, B: AsRef<[u8]>>(a: &Unit<A>, b: &Unit<B>, bytes: usize) -> bool {
    a.may_end_after(bytes) && b.may_end_after(bytes)
}
