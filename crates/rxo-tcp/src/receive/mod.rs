//! The receive sequence variables (RFC 9293, section 3.3.1), the window, and the text.

mod acks;
mod rate;
mod reassembly;
mod repeats;
mod sack;
mod slices;
mod spill;
mod window;

use rxo_frame::{Chain, Frames};
use rxo_wire::SeqNumber;

pub use self::acks::AckOwed;
pub(crate) use self::acks::{AckKind, Acks};
pub(crate) use self::rate::{Progress, ReadRate};
use self::reassembly::{Inserted, Reassembly, Text};
pub(crate) use self::sack::SackReport;
use self::slices::Slices;
use self::spill::Spill;
use crate::Config;
use crate::arrives::offered_scale;
use crate::options::{SackBlock, SackBlocks};
use crate::segment::Payload;
use crate::sequence::{after_rounds, before, comes_round, distance, earlier};

/// The receiving direction of a connection.
#[derive(Debug)]
pub(crate) struct Receive<B> {
    /// IRS.
    pub(crate) irs: SeqNumber,
    /// RCV.NXT: the next sequence number expected.
    pub(crate) nxt: SeqNumber,
    /// The shift of our windows, in bits.
    pub(crate) scale: u8,
    /// The maximum segment size that we offered.
    pub(crate) mss: u32,
    /// The sequence number of the peer's FIN, once it is known.
    pub(crate) fin_at: Option<SeqNumber>,
    /// What SACK reports.
    pub(crate) sack: SackReport,
    /// The right edge of the window. Moves in steps that are worth an update.
    edge: SeqNumber,
    /// The furthest edge in any acknowledgement, owed ones included. Rounding up may put it past `edge`.
    said: SeqNumber,
    /// The furthest edge that was sent to the peer.
    told: SeqNumber,
    capacity: u32,
    /// What the text may take: the capacity, or a larger window that was offered before it shrank.
    held: u32,
    /// Text in order, for the application, in the buffers that it came in.
    ready: Chain<B>,
    /// How many bytes in order behind `ready`, up to RCV.NXT, were copied to `spill`.
    spilled_bytes: u32,
    waiting: Reassembly<B>,
    spill: Spill,
    /// The largest text of a segment so far, which estimates the peer's full segments, in bytes.
    largest_text: u32,
    /// How often the sequence numbers of text in order have come round.
    received_rounds: u16,
}

/// What became of a segment's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It was in order.
    InOrder {
        /// Whether out-of-order text waits, or waited until now: then an acknowledgement is sent at once.
        beside_a_gap: bool,
    },
    /// It is out of order, or was received before.
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
            held: config.receive_buffer_bytes,
            ready: Chain::with_limit(config.receive_pieces.saturating_sub(PIECES_OF_A_RING)),
            spilled_bytes: 0,
            waiting: Reassembly::with_limits(config.receive_pieces / 2, config.receive_pieces / 2),
            // Rounding may put the offered edge behind the room that there is.
            spill: Spill::with_capacity(config.receive_buffer_bytes + (1 << offered_scale(config))),
            largest_text: LEAST_FULL_SEGMENT,
            received_rounds: 0,
        }
    }

    /// Changes the capacity to `bytes`. Text stays, and so does the room inside the offered window. `pieces` is
    /// the least number of pieces of text to keep. Returns whether that changes anything; only then it
    /// allocates.
    pub(crate) fn resize(&mut self, bytes: u32, pieces: usize) -> bool {
        let held = bytes.max(distance(self.read_at(), self.edge));
        if (bytes, held) == (self.capacity, self.held) {
            return false;
        }
        (self.capacity, self.held) = (bytes, held);
        self.waiting.set_most_runs(most_gaps(held, pieces));
        // Rounding may put the offered edge behind the room that there is.
        let room = held + (1 << self.scale);
        if self.is_spilling() || self.waiting.has_spilled() {
            self.spill.resize(self.read_at(), room);
        } else {
            self.spill = Spill::with_capacity(room);
        }
        true
    }

    /// Frees the memory of a larger window that was offered before the buffer shrank, as far as the peer has used
    /// the window and the text was read. Returns whether there was such.
    pub(crate) fn free_used_window(&mut self, pieces: usize) -> bool {
        self.capacity < self.held && self.resize(self.capacity, pieces)
    }

    /// The size of the buffer, in bytes.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The memory that the text may take, in bytes, copies apart.
    pub(crate) fn held_bytes(&self) -> u32 {
        self.held
    }

    /// The right edge of the offered window, owed acknowledgements included.
    pub(crate) fn offered_edge(&self) -> SeqNumber {
        self.said
    }

    /// Takes the peer's initial sequence number, `irs`.
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

    /// The estimate of the peer's full segment, in bytes (RFC 5681, section 4.2).
    pub(crate) fn full_segment(&self) -> u32 {
        self.largest_text.min(self.mss)
    }

    /// Whether out-of-order text waits.
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

    /// The pieces of text in order that the application has not consumed.
    pub(crate) fn slices(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        Slices::new(self.ready.slices(), self.spilled())
    }

    /// The part of the text in order that was copied.
    fn spilled(&self) -> [&[u8]; 2] {
        self.spill.slices(before(self.text_end(), self.spilled_bytes), self.spilled_bytes)
    }

    /// Consumes up to `bytes` of text in order. Returns how many.
    pub(crate) fn consume(&mut self, bytes: usize) -> usize {
        let consumed = self.ready.advance(bytes);
        consumed + self.consume_spilled(bytes - consumed)
    }

    fn consume_spilled(&mut self, bytes: usize) -> usize {
        let consumed = bytes.min(self.spilled_bytes as usize);
        self.spilled_bytes -= consumed as u32;
        consumed
    }

    /// Copies text in order into `to` and consumes it. Returns how many bytes.
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

    /// Whether text in order is copied because buffers have run short.
    pub(crate) fn is_spilling(&self) -> bool {
        self.spilled_bytes > 0
    }

    /// Whether a buffer with text in order before `seq` is kept.
    pub(crate) fn keeps_buffers_before(&self, seq: SeqNumber) -> bool {
        !self.ready.is_empty() && self.read_at().is_before(seq)
    }

    /// Whether a buffer with out-of-order text is kept.
    pub(crate) fn keeps_buffers_out_of_order(&self) -> bool {
        self.waiting.lent() > 0
    }

    /// The sequence number that the application reads next.
    pub(crate) fn read_at(&self) -> SeqNumber {
        before(self.text_end(), self.ready_bytes() as u32)
    }

    /// RCV.NXT without the peer's FIN.
    fn text_end(&self) -> SeqNumber {
        self.fin_at.map_or(self.nxt, |at| earlier(at, self.nxt))
    }

    /// Moves all text into the buffers that `exchange` makes of it.
    pub(crate) fn exchange(&mut self, mut exchange: impl FnMut(&B, &[u8]) -> Option<B>) {
        self.ready.exchange(&mut exchange);
        self.waiting.exchange(&mut exchange);
    }

    /// Drops all text.
    pub(crate) fn clear(&mut self) {
        self.consume(usize::MAX);
        self.waiting.clear();
    }

    /// Frees the memory that holds no text. It is allocated again when it is used.
    pub(crate) fn free_unused(&mut self) {
        self.ready.free_unused();
        self.waiting.free_unused();
        if !self.is_spilling() && !self.waiting.has_spilled() {
            self.spill.free();
        }
    }

    /// Frees all memory but that of text to be read: no more text will be taken.
    pub(crate) fn give_back(&mut self) {
        self.waiting = Reassembly::with_limits(0, 0);
        if self.is_spilling() {
            // The ring of copies stays until all of it was read.
            return;
        }
        self.spill = Spill::with_capacity(0);
        self.held = self.ready_bytes() as u32;
        if self.held == 0 {
            self.ready = Chain::with_limit(0);
        }
    }

    /// The first contiguous part of `start` to `end` that was received before (RFC 2883, section 4).
    pub(crate) fn duplicate_in(&self, start: SeqNumber, end: SeqNumber) -> Option<SackBlock> {
        if start.is_before(self.nxt) && start.is_before(end) {
            return Some(SackBlock { start, end: earlier(end, self.nxt) });
        }
        self.waiting.first_part(start, end)
    }

    /// Takes text at `seq`, which is inside the window.
    pub(crate) fn accept(&mut self, seq: SeqNumber, payload: Payload<B>) -> Accepted {
        self.largest_text = self.largest_text.max(payload.bytes());
        if seq == self.nxt { self.append(payload) } else { self.keep(seq, payload) }
    }

    /// How many more buffers of text in order can be kept, while no out-of-order text waits.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        if self.is_spilling() { 0 } else { self.ready.room_pieces() }
    }

    /// Takes text at RCV.NXT, of a segment or of a GSO frame whose segments have `size` bytes. No out-of-order
    /// text waits.
    #[inline]
    pub(crate) fn append_expected(&mut self, payload: Payload<B>, size: u32) {
        self.largest_text = self.largest_text.max(size);
        if self.room() > 0 {
            self.push_ready(payload);
        } else {
            self.push_spilled(&payload);
        }
    }

    /// Takes the text `first`, and that at the same place in each of the next `later` frames, at RCV.NXT. No
    /// out-of-order text waits, and there is room for all. Returns how many texts there were.
    #[inline]
    pub(crate) fn append_alike(
        &mut self,
        first: Payload<B>,
        (frames, later): (&mut impl Frames<B>, usize),
    ) -> usize {
        let bytes = first.bytes();
        let (buffer, range) = first.into_parts();
        let is_taken = self.ready.push_known(buffer, range.clone()).is_ok();
        let count = usize::from(is_taken) + self.ready.extend_known(frames, later, range);
        self.largest_text = self.largest_text.max(bytes);
        self.advance(count as u32 * bytes);
        count
    }

    fn append(&mut self, payload: Payload<B>) -> Accepted {
        if self.has_gap() || self.room() == 0 {
            return self.append_otherwise(payload);
        }
        self.push_ready(payload);
        Accepted::InOrder { beside_a_gap: false }
    }

    /// The slow path: out-of-order text waits, or there is no room for the buffer.
    #[inline(never)]
    fn append_otherwise(&mut self, payload: Payload<B>) -> Accepted {
        let beside_a_gap = self.has_gap();
        self.push(Text::Lent(payload));
        while let Some(next) = self.waiting.take_at(self.nxt) {
            self.push(next);
        }
        Accepted::InOrder { beside_a_gap }
    }

    /// Appends text at RCV.NXT: by reference while there is room for its buffer, else as a copy.
    fn push(&mut self, text: Text<B>) {
        match text {
            Text::Lent(payload) if !self.is_spilling() && self.may_lend() => {
                self.push_ready(payload);
            }
            Text::Lent(payload) => self.push_spilled(&payload),
            Text::Spilled(bytes) => self.count_spilled(bytes),
        }
    }

    /// Appends a copy of text at RCV.NXT.
    #[inline(never)]
    fn push_spilled(&mut self, payload: &Payload<B>) {
        self.make_room();
        self.spill.write(self.nxt, payload.as_slice());
        self.count_spilled(payload.bytes());
    }

    /// Counts `bytes` at RCV.NXT that were copied.
    fn count_spilled(&mut self, bytes: u32) {
        self.spilled_bytes += bytes;
        self.advance(bytes);
    }

    /// Whether another buffer may be kept. Out-of-order text has its place reserved among those in order.
    fn may_lend(&self) -> bool {
        self.ready.room_pieces() > self.waiting.lent()
    }

    /// Reserves room in the spill for the whole window.
    fn make_room(&mut self) {
        let read_at = self.read_at();
        if self.is_spilling() || self.waiting.has_spilled() {
            self.spill.advance_to(read_at);
        } else {
            self.spill.begin_at(read_at);
        }
    }

    /// Not a call, which would cost a lone segment 21 instructions.
    #[inline(always)]
    fn push_ready(&mut self, payload: Payload<B>) {
        let bytes = payload.bytes();
        let (buffer, range) = payload.into_parts();
        // There is room: see `may_lend`.
        if self.ready.push_known(buffer, range).is_ok() {
            self.advance(bytes);
        }
    }

    /// Takes note of `bytes` of text in order.
    #[inline]
    fn advance(&mut self, bytes: u32) {
        let nxt = self.nxt + bytes;
        if comes_round(self.irs + 1, self.nxt, nxt) {
            self.received_rounds = self.received_rounds.wrapping_add(1);
        }
        self.nxt = nxt;
    }

    /// Bytes of text that have arrived in order. There is a SYN of the peer.
    pub(crate) fn received_bytes(&self) -> u64 {
        let fin = u64::from(self.fin_at.is_some_and(|at| at.is_before(self.nxt)));
        after_rounds(self.received_rounds, self.irs + 1, self.nxt).saturating_sub(fin)
    }

    fn keep(&mut self, seq: SeqNumber, payload: Payload<B>) -> Accepted {
        self.make_room();
        let may_lend = self.may_lend();
        match self.waiting.insert(seq, payload, may_lend, &mut self.spill) {
            Inserted::Kept => {
                self.waiting.run_around(seq).into_iter().for_each(|run| self.sack.received(run));
            }
            Inserted::Duplicate => {}
            Inserted::NoRoom => return Accepted::NoRoom,
        }
        Accepted::OutOfOrder
    }

    /// Records a FIN at `at`. The last one counts; an out-of-order FIN before other text does not.
    pub(crate) fn expect_fin(&mut self, at: SeqNumber) {
        if at == self.nxt || !self.is_passed(at) {
            self.fin_at = Some(at);
        }
    }

    /// Forgets a FIN behind which there is text: the peer cannot have sent it.
    pub(crate) fn doubt_fin(&mut self) {
        self.fin_at = self.fin_at.filter(|at| !self.is_passed(*at));
    }

    /// Whether text at or after `at` was received.
    fn is_passed(&self, at: SeqNumber) -> bool {
        at.is_before(self.nxt) || self.waiting.reaches_beyond(at)
    }
}

/// How many gaps a window of `bytes` may have: half as many as pieces of text are kept, or more in a large window.
fn most_gaps(bytes: u32, pieces: usize) -> usize {
    (pieces / 2).max((bytes / BYTES_FOR_A_GAP) as usize)
}

/// A gap for so many bytes of the window: every other segment may be missing, if each has 256 bytes or more.
const BYTES_FOR_A_GAP: u32 = 512;
/// RFC 9293, section 3.7.1: every peer may send this; estimates begin here.
const LEAST_FULL_SEGMENT: u32 = 536;
/// A ring is read in two pieces if the text wraps around its end.
const PIECES_OF_A_RING: usize = 2;

#[cfg(test)]
mod tests;
