//! The receive sequence variables (RFC 9293, section 3.3.1), the window, and the text.

mod acks;
mod reassembly;
mod sack;
mod slices;
mod spill;
mod window;

use core::ops::Range;

use rxo_frame::Chain;
use rxo_wire::SeqNumber;

pub use self::acks::AckOwed;
pub(crate) use self::acks::{AckKind, Acks};
use self::reassembly::{Inserted, Reassembly, Text};
pub(crate) use self::sack::SackReport;
use self::slices::Slices;
use self::spill::Spill;
use crate::Config;
use crate::arrives::offered_scale;
use crate::options::{SackBlock, SackBlocks};
use crate::segment::Payload;
use crate::sequence::{before, distance, earlier};

/// The receiving half.
#[derive(Debug)]
pub(crate) struct Receive<B> {
    /// IRS.
    pub(crate) irs: SeqNumber,
    /// RCV.NXT: the next sequence number expected.
    pub(crate) nxt: SeqNumber,
    /// By how many bits our windows are shifted.
    pub(crate) scale: u8,
    /// The largest segment that we said we take.
    pub(crate) mss: u32,
    /// Where the peer's FIN stands, once it is known.
    pub(crate) fin_at: Option<SeqNumber>,
    /// What SACK says.
    pub(crate) sack: SackReport,
    /// Where the window ends: moves in steps that are worth telling.
    edge: SeqNumber,
    /// The furthest edge that an acknowledgement says, one that is owed included; rounding up may put it
    /// past `edge`.
    said: SeqNumber,
    /// The furthest edge that the peer was told.
    told: SeqNumber,
    capacity: u32,
    /// Text in order, for the application, in the buffers it came in.
    ready: Chain<B>,
    /// So many bytes in order behind it, up to RCV.NXT, were copied to `spill`.
    spilled_bytes: u32,
    waiting: Reassembly<B>,
    spill: Spill,
    /// The largest text of a segment so far: what the peer's full segments are.
    largest_text: u32,
}

/// What became of a segment's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It came in order.
    InOrder {
        /// Whether text waits still, or waited until now: then the peer is told at once.
        beside_a_gap: bool,
    },
    /// It waits for what comes before it, or was here already.
    OutOfOrder,
    /// There are too many gaps.
    NoRoom,
}

impl<B: AsRef<[u8]>> Receive<B> {
    pub(crate) fn new(config: &Config) -> Self {
        let zero = SeqNumber::default();
        Self {
            irs: zero,
            nxt: zero,
            scale: 0,
            mss: config.maximum_segment_size.into(),
            fin_at: None,
            sack: SackReport::default(),
            edge: zero,
            said: zero,
            told: zero,
            capacity: config.receive_buffer_bytes,
            ready: Chain::with_capacity(config.receive_pieces.saturating_sub(PIECES_OF_A_RING)),
            spilled_bytes: 0,
            waiting: Reassembly::with_limit(config.receive_pieces / 2),
            // Rounding may put the edge that was told behind what there is room for.
            spill: Spill::with_capacity(config.receive_buffer_bytes + (1 << offered_scale(config))),
            largest_text: LEAST_FULL_SEGMENT,
        }
    }

    /// The peer's SYN has come: `irs` is its number.
    pub(crate) fn start(&mut self, irs: SeqNumber) {
        (self.irs, self.nxt) = (irs, irs + 1);
        self.edge = self.nxt + u32::from(self.syn_window());
        (self.said, self.told) = (self.edge, self.edge);
        (self.fin_at, self.sack) = (None, SackReport::default());
        self.waiting.clear();
    }

    /// SEG.WND of a SYN, which is never scaled (RFC 7323, section 2.2).
    pub(crate) fn syn_window(&self) -> u16 {
        u16::try_from(self.capacity).unwrap_or(u16::MAX)
    }

    /// RCV.WND as the peer knows it.
    pub(crate) fn wnd(&self) -> u32 {
        distance(self.nxt, self.told)
    }

    /// The peer's full segment, in bytes, as far as it has shown (RFC 5681, section 4.2).
    pub(crate) fn full_segment(&self) -> u32 {
        self.largest_text.min(self.mss)
    }

    /// Whether text waits for what comes before it.
    pub(crate) fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The blocks of the next acknowledgement.
    pub(crate) fn sack_blocks(&mut self) -> SackBlocks {
        self.sack.take(&self.waiting)
    }

    /// Text in order that the application has not consumed, in bytes.
    pub(crate) fn ready_bytes(&self) -> usize {
        self.ready.len_bytes() + self.spilled_bytes as usize
    }

    /// That text, piece by piece.
    pub(crate) fn slices(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        Slices::new(self.ready.slices(), self.spilled())
    }

    /// The part of it that was copied.
    fn spilled(&self) -> [&[u8]; 2] {
        self.spill.slices(before(self.text_end(), self.spilled_bytes), self.spilled_bytes)
    }

    /// The application has consumed `bytes`; says how many there were.
    pub(crate) fn consume(&mut self, bytes: usize) -> usize {
        let consumed = self.ready.advance(bytes);
        consumed + self.consume_spilled(bytes - consumed)
    }

    fn consume_spilled(&mut self, bytes: usize) -> usize {
        let consumed = bytes.min(self.spilled_bytes as usize);
        self.spilled_bytes -= consumed as u32;
        consumed
    }

    /// The application copies text to `to`; says how much.
    pub(crate) fn read(&mut self, to: &mut [u8]) -> usize {
        let mut copied = self.ready.read(to);
        if self.spilled_bytes == 0 {
            return copied;
        }
        let first = copied;
        for part in self.spilled() {
            let bytes = part.len().min(to.len() - copied);
            to[copied..copied + bytes].copy_from_slice(&part[..bytes]);
            copied += bytes;
        }
        self.consume_spilled(copied - first);
        copied
    }

    /// Whether text in order is being copied, because buffers have run short.
    pub(crate) fn is_spilling(&self) -> bool {
        self.spilled_bytes > 0
    }

    /// Whether a buffer is kept of text before `seq` that is in order.
    pub(crate) fn keeps_buffers_before(&self, seq: SeqNumber) -> bool {
        !self.ready.is_empty() && self.read_at().is_before(seq)
    }

    /// Whether a buffer is kept of text out of order.
    pub(crate) fn keeps_buffers_out_of_order(&self) -> bool {
        self.waiting.lent() > 0
    }

    /// What the application reads next.
    fn read_at(&self) -> SeqNumber {
        before(self.text_end(), self.ready_bytes() as u32)
    }

    /// RCV.NXT, less the peer's FIN once that has been taken.
    fn text_end(&self) -> SeqNumber {
        self.fin_at.map_or(self.nxt, |at| earlier(at, self.nxt))
    }

    /// Puts all text into buffers that `exchange` makes of it.
    pub(crate) fn exchange(&mut self, mut exchange: impl FnMut(&B, &[u8]) -> Option<B>) {
        self.ready.exchange(&mut exchange);
        self.waiting.exchange(&mut exchange);
    }

    /// Drops all text.
    pub(crate) fn clear(&mut self) {
        self.consume(usize::MAX);
        self.waiting.clear();
    }

    /// No more text will be taken: gives back what held text, all but what is still to be read.
    pub(crate) fn give_back(&mut self) {
        self.waiting = Reassembly::with_limit(0);
        if self.ready_bytes() == 0 {
            self.ready = Chain::with_capacity(0);
            self.spill = Spill::with_capacity(0);
        }
    }

    /// The first contiguous part of `start` to `end` that was here before (RFC 2883, section 4).
    pub(crate) fn duplicate_in(&self, start: SeqNumber, end: SeqNumber) -> Option<SackBlock> {
        if start.is_before(self.nxt) && start.is_before(end) {
            return Some(SackBlock { start, end: earlier(end, self.nxt) });
        }
        self.waiting.first_part(start, end)
    }

    /// Takes text at `seq`, which lies in the window.
    pub(crate) fn accept(&mut self, seq: SeqNumber, payload: Payload<B>) -> Accepted {
        self.largest_text = self.largest_text.max(payload.bytes());
        if seq == self.nxt { self.append(payload) } else { self.keep(seq, payload) }
    }

    /// How many buffers of text in order have room, while no text waits.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.ready.room_pieces()
    }

    /// Takes text at RCV.NXT, when none waits and there is room.
    #[inline]
    pub(crate) fn append_expected(&mut self, payload: Payload<B>) {
        self.largest_text = self.largest_text.max(payload.bytes());
        self.push_ready(payload);
    }

    /// Takes the text of a GSO frame at RCV.NXT, when none waits and there is room. Its segments have
    /// `size` bytes each.
    pub(crate) fn append_gso(&mut self, payload: Payload<B>, size: u32) {
        self.largest_text = self.largest_text.max(size);
        self.push_ready(payload);
    }

    /// Takes text of one length at RCV.NXT, in `range` of each of `buffers`, when none waits and there is
    /// room for all; says how many there were.
    #[inline]
    pub(crate) fn append_alike(
        &mut self,
        buffers: impl Iterator<Item = B>,
        range: Range<usize>,
    ) -> usize {
        let bytes = range.len();
        let count = self.ready.extend_known(buffers, range);
        self.largest_text = self.largest_text.max(bytes as u32);
        self.nxt = self.nxt + (count * bytes) as u32;
        count
    }

    fn append(&mut self, payload: Payload<B>) -> Accepted {
        if self.has_gap() || self.is_spilling() || self.room() == 0 {
            return self.append_otherwise(payload);
        }
        self.push_ready(payload);
        Accepted::InOrder { beside_a_gap: false }
    }

    /// Where text waits, or there is no room for its buffer.
    #[inline(never)]
    fn append_otherwise(&mut self, payload: Payload<B>) -> Accepted {
        let beside_a_gap = self.has_gap();
        self.push(Text::Lent(payload));
        while let Some(next) = self.waiting.take_at(self.nxt) {
            self.push(next);
        }
        Accepted::InOrder { beside_a_gap }
    }

    /// Appends text at RCV.NXT: by reference while there is room for its buffer.
    fn push(&mut self, text: Text<B>) {
        match text {
            Text::Lent(payload) if !self.is_spilling() && self.may_lend() => {
                self.push_ready(payload);
                return;
            }
            Text::Lent(ref payload) => {
                self.make_room();
                self.spill.write(self.nxt, payload.as_slice());
            }
            Text::Spilled(_) => {}
        }
        self.spilled_bytes += text.bytes();
        self.nxt = self.nxt + text.bytes();
    }

    /// Whether another buffer may be kept: what waits has its place among those in order.
    fn may_lend(&self) -> bool {
        self.ready.room_pieces() > self.waiting.lent()
    }

    /// The spill gets room for all that can come.
    fn make_room(&mut self) {
        let read_at = self.read_at();
        if self.is_spilling() || self.waiting.has_spilled() {
            self.spill.advance_to(read_at);
        } else {
            self.spill.begin_at(read_at);
        }
    }

    #[inline]
    fn push_ready(&mut self, payload: Payload<B>) {
        let bytes = payload.bytes();
        let (buffer, range) = payload.into_parts();
        // There is room: see `may_lend`.
        if self.ready.push_known(buffer, range).is_ok() {
            self.nxt = self.nxt + bytes;
        }
    }

    fn keep(&mut self, seq: SeqNumber, payload: Payload<B>) -> Accepted {
        self.make_room();
        let may_lend = self.may_lend();
        match self.waiting.insert(seq, payload, may_lend, &mut self.spill) {
            Inserted::Kept => self.sack.received(seq),
            Inserted::Duplicate => {}
            Inserted::NoRoom => return Accepted::NoRoom,
        }
        Accepted::OutOfOrder
    }

    /// A FIN at `at` came. The last one counts; out of order none that text has passed.
    pub(crate) fn expect_fin(&mut self, at: SeqNumber) {
        if at == self.nxt || !self.is_passed(at) {
            self.fin_at = Some(at);
        }
    }

    /// Forgets a FIN behind which there is text: the peer did not send it.
    pub(crate) fn doubt_fin(&mut self) {
        self.fin_at = self.fin_at.filter(|at| !self.is_passed(*at));
    }

    /// Whether text at `at` or after it is here.
    fn is_passed(&self, at: SeqNumber) -> bool {
        at.is_before(self.nxt) || self.waiting.reaches_beyond(at)
    }
}

/// RFC 9293, section 3.7.1: what every peer may send; estimates do not start lower.
const LEAST_FULL_SEGMENT: u32 = 536;
/// A ring is read in two pieces where its end lies between them.
const PIECES_OF_A_RING: usize = 2;

#[cfg(test)]
mod tests;
