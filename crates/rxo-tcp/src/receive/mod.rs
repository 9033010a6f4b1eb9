//! The receive sequence variables (RFC 9293, section 3.3.1), the window, and the text.

mod acks;
mod reassembly;
mod sack;

use core::ops::Range;

use rxo_frame::Chain;
use rxo_wire::SeqNumber;

pub use self::acks::AckOwed;
pub(crate) use self::acks::Acks;
use self::reassembly::{Inserted, Reassembly};
pub(crate) use self::sack::SackReport;
use crate::Config;
use crate::options::{SackBlock, SackBlocks};
use crate::segment::Payload;
use crate::sequence::{distance, later};

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
    /// The furthest edge that the peer was told; rounding up may put it past `edge`.
    told: SeqNumber,
    capacity: u32,
    /// Text in order, for the application.
    ready: Chain<B>,
    waiting: Reassembly<B>,
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
    /// There is no room for another buffer.
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
            told: zero,
            capacity: config.receive_buffer_bytes,
            ready: Chain::with_capacity(config.receive_pieces),
            waiting: Reassembly::with_limit(config.receive_pieces / 2),
            largest_text: LEAST_FULL_SEGMENT,
        }
    }

    /// The peer's SYN has come: `irs` is its number.
    pub(crate) fn start(&mut self, irs: SeqNumber) {
        (self.irs, self.nxt) = (irs, irs + 1);
        self.edge = self.nxt + u32::from(self.syn_window());
        self.told = self.edge;
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
        self.ready.len_bytes()
    }

    /// That text, piece by piece.
    pub(crate) fn slices(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.ready.slices()
    }

    /// The application has consumed `bytes`; says how many there were.
    pub(crate) fn consume(&mut self, bytes: usize) -> usize {
        self.ready.advance(bytes)
    }

    /// The application copies text to `to`; says how much.
    pub(crate) fn read(&mut self, to: &mut [u8]) -> usize {
        self.ready.read(to)
    }

    /// Puts all text into buffers that `exchange` makes of it.
    pub(crate) fn exchange(&mut self, mut exchange: impl FnMut(&B, &[u8]) -> Option<B>) {
        self.ready.exchange(&mut exchange);
        self.waiting.exchange(&mut exchange);
    }

    /// Drops all text.
    pub(crate) fn clear(&mut self) {
        self.ready.advance(usize::MAX);
        self.waiting.clear();
    }

    /// No more text will be taken: gives back what held text, all but what is still to be read.
    pub(crate) fn give_back(&mut self) {
        self.waiting = Reassembly::with_limit(0);
        if self.ready_bytes() == 0 {
            self.ready = Chain::with_capacity(0);
        }
    }

    /// Takes text at `seq`, which lies in the window.
    pub(crate) fn accept(&mut self, seq: SeqNumber, payload: Payload<B>) -> Accepted {
        self.largest_text = self.largest_text.max(payload.bytes());
        if seq == self.nxt { self.append(payload) } else { self.keep(seq, payload) }
    }

    /// How many pieces of text in order have room, while none waits.
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

    /// The same for text of segments with `size` bytes each.
    pub(crate) fn append_large(&mut self, payload: Payload<B>, size: u32) {
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
        if self.ready.room_pieces() <= self.waiting.len() {
            return Accepted::NoRoom;
        }
        let beside_a_gap = self.has_gap();
        self.push_ready(payload);
        let mut again = None;
        let mut note = |block| again = again.or(Some(block));
        while let Some(next) = self.waiting.take_at(self.nxt, &mut note) {
            self.push_ready(next);
        }
        if let Some(block) = again {
            self.sack.received_again(block);
        }
        Accepted::InOrder { beside_a_gap }
    }

    #[inline]
    fn push_ready(&mut self, payload: Payload<B>) {
        let bytes = payload.bytes();
        let (buffer, range) = payload.into_parts();
        // There is room: see `append`, and `keep`, which leaves room for all that waits.
        if self.ready.push_known(buffer, range).is_ok() {
            self.nxt = self.nxt + bytes;
        }
    }

    fn keep(&mut self, seq: SeqNumber, payload: Payload<B>) -> Accepted {
        let whole = SackBlock { start: seq, end: seq + payload.bytes() };
        let has_room = self.ready.room_pieces() > self.waiting.len();
        if !has_room {
            return Accepted::NoRoom;
        }
        match self.waiting.insert(seq, payload) {
            Inserted::Kept { duplicate } => {
                duplicate.into_iter().for_each(|block| self.sack.received_again(block));
                self.sack.received(seq);
            }
            Inserted::Duplicate => self.sack.received_again(whole),
            Inserted::NoRoom => return Accepted::NoRoom,
        }
        Accepted::OutOfOrder
    }

    /// SEG.WND of a segment that leaves now; moves the window's edge when that is worth it
    /// (RFC 9293, section 3.8.6.2.2).
    pub(crate) fn window_field(&mut self) -> u16 {
        if self.gain() >= (self.capacity / 2).min(self.mss) {
            self.edge = self.nxt + self.free();
        }
        let field = self.window_field_for(self.nxt);
        self.told = later(self.told, self.nxt + (u32::from(field) << self.scale));
        field
    }

    /// SEG.WND that says the same edge beside SEG.ACK = `ack`. Rounded up, so that the edge does not
    /// seem to move back by more than a unit of the scale (RFC 7323, section 2.4); what the peer was
    /// ever told is taken when it comes.
    pub(crate) fn window_field_for(&self, ack: SeqNumber) -> u16 {
        let units = distance(ack, self.edge).div_ceil(1 << self.scale);
        u16::try_from(units).unwrap_or(u16::MAX)
    }

    /// Whether so much room has come free that the peer should hear of it without being asked.
    pub(crate) fn wants_update(&self) -> bool {
        let is_nearly_closed = self.wnd() < 2 * self.mss;
        let worth = if is_nearly_closed { self.mss } else { self.capacity / 4 };
        self.gain() >= worth.min(self.capacity / 2)
    }

    /// How far the edge could move.
    fn gain(&self) -> u32 {
        distance(self.edge, self.nxt + self.free())
    }

    /// Room for text, in whole units of the window.
    fn free(&self) -> u32 {
        let free = self.capacity.saturating_sub(self.ready.len_bytes() as u32);
        (free >> self.scale) << self.scale
    }
}

/// RFC 9293, section 3.7.1: what every peer may send; estimates do not start lower.
const LEAST_FULL_SEGMENT: u32 = 536;

#[cfg(test)]
mod tests;
