//! One flow of both captures.
//!
//! Whatever one capture has shown and the other has not waits in a queue. Only one of them can be
//! ahead: as soon as the other shows something, it is compared with the front of the queue, as many
//! bytes as both have.

use std::collections::VecDeque;

use rxo_wire::TcpFlags;

use super::facts::{CONGESTION, Facts, Last, Segment, Steady, Whole};
use super::{Kind, Side};

/// A packet of which some bytes are not yet compared.
#[derive(Debug)]
pub(super) struct Unit<B> {
    /// Its number in its capture, from 1.
    pub(super) packet: u64,
    pub(super) facts: Facts,
    pub(super) bytes: B,
    /// How many of the bytes were compared.
    done: usize,
}

/// What waits, apart from its bytes: counted against the limit, so that packets without payload
/// count too.
const UNIT_BYTES: usize = size_of::<Unit<Box<[u8]>>>();

impl<B: AsRef<[u8]>> Unit<B> {
    pub(super) const fn new(packet: u64, facts: Facts, bytes: B) -> Self {
        Self { packet, facts, bytes, done: 0 }
    }

    fn rest(&self) -> &[u8] {
        self.bytes.as_ref().get(self.done..).unwrap_or_default()
    }

    /// A copy that needs nobody's memory, of what is not yet compared.
    fn kept(self) -> Unit<Box<[u8]>> {
        let Self { packet, facts, bytes, done } = self;
        Unit { packet, facts, bytes: bytes.as_ref().into(), done }
    }

    /// What it costs to keep it.
    fn cost(&self) -> usize {
        UNIT_BYTES + self.bytes.as_ref().len()
    }
}

/// Both captures' packets of one flow, as far as they are not yet compared.
#[derive(Debug)]
pub(super) struct Flow {
    ahead: Side,
    waiting: VecDeque<Unit<Box<[u8]>>>,
    /// PSH and FIN of each capture since both had a packet end at the same byte.
    ending: [TcpFlags; 2],
    /// Payload bytes compared.
    offset: u64,
}

/// Where two flows differ.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) kind: Kind,
    pub(super) stream_offset: u64,
    pub(super) packets: [Option<u64>; 2],
    pub(super) texts: [String; 2],
}

impl Flow {
    pub(super) const fn new() -> Self {
        Self {
            ahead: Side::A,
            waiting: VecDeque::new(),
            ending: [TcpFlags::from_bits(0); 2],
            offset: 0,
        }
    }

    /// Whether nothing waits, so that forgetting the flow loses nothing but the offset.
    pub(super) fn is_level(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The side that is ahead, and the number of the packet that waits longest.
    pub(super) fn oldest(&self) -> Option<(Side, u64)> {
        self.waiting.front().map(|unit| (self.ahead, unit.packet))
    }

    /// Payload bytes found equal so far.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Compares one more packet of `side`; what has no counterpart yet waits. Says how many more
    /// bytes wait (or fewer, of the other side).
    pub(super) fn push<B: AsRef<[u8]>>(
        &mut self,
        side: Side,
        mut unit: Unit<B>,
        waiting: &mut [usize; 2],
    ) -> Result<(), Mismatch> {
        while let Some(front) = self.waiting.front_mut().filter(|_| self.ahead != side) {
            let step = compare(front, &unit, self.offset).map_err(|found| found.seen_from(side))?;
            front.done += step;
            unit.done += step;
            if matches!(unit.facts, Facts::Tcp(_)) {
                self.offset += step as u64;
            }
            let (front_ends, unit_ends) = (front.rest().is_empty(), unit.rest().is_empty());
            let found = self.end_of_packets(front_ends, unit_ends, side, &unit);
            if front_ends && let Some(gone) = self.waiting.pop_front() {
                waiting[side.other().index()] -= gone.cost();
            }
            found?;
            if unit_ends {
                return Ok(());
            }
        }
        self.ahead = side;
        waiting[side.index()] += unit.cost();
        self.waiting.push_back(unit.kept());
        Ok(())
    }

    /// Takes note of what packets say at their ends, and compares it where both end.
    fn end_of_packets<B: AsRef<[u8]>>(
        &mut self,
        front_ends: bool,
        unit_ends: bool,
        side: Side,
        unit: &Unit<B>,
    ) -> Result<(), Mismatch> {
        let Some(front) = self.waiting.front() else { return Ok(()) };
        let (Facts::Tcp(front_says), Facts::Tcp(unit_says)) = (front.facts, unit.facts) else {
            return Ok(());
        };
        if front_ends {
            let ending = &mut self.ending[side.other().index()];
            *ending = *ending | front_says.ending;
        }
        if unit_ends {
            self.ending[side.index()] = self.ending[side.index()] | unit_says.ending;
        }
        if !(front_ends && unit_ends) {
            return Ok(());
        }
        let mut found = last(front_says.last, unit_says.last);
        let endings = std::mem::take(&mut self.ending);
        let (there, here) = (endings[side.other().index()], endings[side.index()]);
        if found.is_none() && there != here {
            found = Some((Kind::Flags, format!("{there:?}"), format!("{here:?}")));
        }
        match found {
            None => Ok(()),
            Some(found) => Err(mismatch(front, unit, self.offset, found).seen_from(side)),
        }
    }

    /// What waits has no counterpart.
    pub(super) fn missing(&self) -> Option<Mismatch> {
        let front = self.waiting.front()?;
        let text = match front.facts {
            Facts::Tcp(says) => describe(&says, front),
            Facts::Whole(_) => format!("a packet of {} bytes", front.bytes.len()),
        };
        let found = Mismatch {
            kind: Kind::Missing,
            stream_offset: self.offset,
            packets: [Some(front.packet), None],
            texts: [text, "nothing".to_owned()],
        };
        Some(found.seen_from(self.ahead.other()))
    }

    /// Forgets what waits, if it is of `side`.
    pub(super) fn clear_of(&mut self, side: Side, waiting: &mut [usize; 2]) {
        if self.ahead == side {
            self.clear(waiting);
        }
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self, waiting: &mut [usize; 2]) {
        let bytes: usize = self.waiting.iter().map(Unit::cost).sum();
        waiting[self.ahead.index()] -= bytes;
        self.waiting = VecDeque::new();
    }
}

impl Mismatch {
    /// With the first of both pairs being the capture's that is not `side`, puts A first.
    fn seen_from(mut self, side: Side) -> Self {
        if side == Side::A {
            self.packets.reverse();
            self.texts.reverse();
        }
        self
    }
}

/// A kind and what each of both has.
type Found = (Kind, String, String);

fn mismatch<A, B>(a: &Unit<A>, b: &Unit<B>, stream_offset: u64, found: Found) -> Mismatch {
    let (kind, of_a, of_b) = found;
    let packets = [Some(a.packet), Some(b.packet)];
    Mismatch { kind, stream_offset, packets, texts: [of_a, of_b] }
}

/// Compares as many bytes as both have, and what holds for them. Says how many.
fn compare<A: AsRef<[u8]>, B: AsRef<[u8]>>(
    a: &Unit<A>,
    b: &Unit<B>,
    offset: u64,
) -> Result<usize, Mismatch> {
    match (a.facts, b.facts) {
        (Facts::Tcp(a_says), Facts::Tcp(b_says)) => segments(a, &a_says, b, &b_says, offset),
        (Facts::Whole(a_says), Facts::Whole(b_says)) => match wholes(a, a_says, b, b_says) {
            None => Ok(a.rest().len()),
            Some(found) => Err(mismatch(a, b, offset, found)),
        },
        // A flow is of one class.
        _ => Err(mismatch(a, b, offset, (Kind::Packet, String::new(), String::new()))),
    }
}

fn segments<A: AsRef<[u8]>, B: AsRef<[u8]>>(
    a: &Unit<A>,
    a_says: &Segment,
    b: &Unit<B>,
    b_says: &Segment,
    offset: u64,
) -> Result<usize, Mismatch> {
    let (a_rest, b_rest) = (a.rest(), b.rest());
    let at = |found| mismatch(a, b, offset, found);
    let seq = |says: &Segment, done: usize| says.seq.wrapping_add(done as u32);
    if a_rest.is_empty() != b_rest.is_empty() {
        return Err(at((Kind::Order, describe(a_says, a), describe(b_says, b))));
    }
    if seq(a_says, a.done) != seq(b_says, b.done) {
        return Err(at((Kind::Sequence, describe(a_says, a), describe(b_says, b))));
    }
    if let Some(found) = steady(a_says.steady, b_says.steady) {
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

/// A segment as people name it.
fn describe<B: AsRef<[u8]>>(says: &Segment, unit: &Unit<B>) -> String {
    let seq = says.seq.wrapping_add(unit.done as u32);
    match unit.rest().len() {
        0 => format!("no payload, {:?}, SEQ {seq}", says.steady.flags | says.ending),
        bytes => format!("{bytes} bytes from SEQ {seq}"),
    }
}

fn steady(a: Steady, b: Steady) -> Option<Found> {
    const ECN_BITS: u8 = 0b11;
    let class = |says: Steady| format!("traffic class {:#04x}", says.traffic_class);
    let flags = |says: Steady| format!("{:?}, urgent pointer {}", says.flags, says.urgent);
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

fn last(a: Last, b: Last) -> Option<Found> {
    if a.ack != b.ack {
        Some((Kind::Acknowledgement, format!("ACK {}", a.ack), format!("ACK {}", b.ack)))
    } else if a.window != b.window {
        Some((Kind::Window, format!("window {}", a.window), format!("window {}", b.window)))
    } else if a.options() != b.options() {
        let text = |says: &Last| format!("options {:02x?}", says.options());
        Some((Kind::Options, text(&a), text(&b)))
    } else {
        None
    }
}

fn wholes<A: AsRef<[u8]>, B: AsRef<[u8]>>(
    a: &Unit<A>,
    a_says: Whole,
    b: &Unit<B>,
    b_says: Whole,
) -> Option<Found> {
    let (a, b) = (a.rest(), b.rest());
    if a_says.traffic_class != b_says.traffic_class {
        let text = |says: Whole| format!("traffic class {:#04x}", says.traffic_class);
        let is_ecn = (a_says.traffic_class ^ b_says.traffic_class) & 0b11 != 0;
        let kind = if is_ecn { Kind::Ecn } else { Kind::TrafficClass };
        return Some((kind, text(a_says), text(b_says)));
    }
    if a_says == b_says && a == b {
        return None;
    }
    let place = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let text = |bytes: &[u8], says: Whole| match bytes.get(place) {
        Some(byte) => format!("byte {place} is {byte:#04x}"),
        None => format!("{} bytes of {}", bytes.len(), says.original_bytes),
    };
    Some((Kind::Packet, text(a, a_says), text(b, b_says)))
}
