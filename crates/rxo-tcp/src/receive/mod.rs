//! The receiving direction: the receive sequence variables (RFC 9293, section 3.3.1), the window, and the
//! data.

mod acks;
mod again;
mod rate;
mod reassembly;
mod repeats;
mod sack;
mod slices;
mod spill;
mod window;

use alloc::boxed::Box;

use rxo_frame::{Chain, Frames};
use rxo_wire::SeqNumber;
use rxo_wire::tcp::{SackBlock, SackBlocks};

pub use self::acks::PendingAck;
pub(crate) use self::acks::{AckKind, Acks};
use self::again::ReadText;
pub(crate) use self::rate::{Progress, ReadRate};
use self::reassembly::{Inserted, Reassembly, Text};
pub(crate) use self::sack::SackReport;
use self::slices::Slices;
use self::spill::Spill;
use crate::Config;
use crate::arrives::offered_scale;
use crate::segment::Payload;
use crate::sequence::{after_rounds, before, distance, earlier, wraps_between};

/// The receiving direction of a connection.
#[derive(Debug)]
pub(crate) struct Receive<B> {
    /// IRS: the peer's initial sequence number.
    pub(crate) irs: SeqNumber,
    /// RCV.NXT: the next sequence number expected from the peer.
    pub(crate) nxt: SeqNumber,
    /// The shift of our windows, in bits.
    pub(crate) scale: u8,
    /// The maximum segment size that we offered, in bytes.
    pub(crate) mss: u32,
    /// The sequence number of the peer's FIN; meaningless unless `knows_fin`. Not an `Option`, which would
    /// take four bytes more.
    fin: SeqNumber,
    /// `true` if the sequence number of the peer's FIN is known.
    knows_fin: bool,
    /// The state from which SACK blocks are built.
    pub(crate) sack: SackReport,
    /// The right edge of the window, which moves only in steps that justify a window update.
    edge: SeqNumber,
    /// The furthest window edge in any ACK, including pending ones. This edge may be after the
    /// exact edge of the window, because windows are rounded up to whole units.
    offered_edge: SeqNumber,
    /// The furthest window edge that was sent to the peer in an ACK.
    advertised_edge: SeqNumber,
    capacity: u32,
    /// The limit for received data in bytes: the capacity, or more if a larger window was offered before the
    /// capacity shrank.
    held: u32,
    /// The in-order data that the application has not read, in its original buffers.
    ready: Chain<B>,
    /// The number of in-order bytes, up to RCV.NXT, that were copied to the ring `spill` because they arrived
    /// in too many buffers.
    spilled_bytes: u32,
    waiting: Reassembly<B>,
    spill: Spill,
    /// The largest payload of a segment so far in bytes, an estimate of the peer's full segment.
    largest_text: u32,
    /// The number of times that the sequence numbers of in-order data have wrapped.
    received_rounds: u16,
    /// The data that the application has read most recently, kept for
    /// [`Connection::copy_segment`](crate::Connection::copy_segment); `None` if it is not kept.
    read_text: Option<Box<ReadText>>,
}

/// The result of accepting a segment's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// The data of the segment was in order.
    InOrder {
        /// `true` if out-of-order data waits, or waited until now: then an ACK is sent at once.
        beside_a_gap: bool,
    },
    /// The data is out of order, or was received before.
    OutOfOrder,
    /// The data was dropped because there are too many gaps.
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
            fin: SeqNumber::default(),
            knows_fin: false,
            sack: SackReport::default(),
            edge: zero,
            offered_edge: zero,
            advertised_edge: zero,
            capacity: config.receive_buffer_bytes,
            held: config.receive_buffer_bytes,
            ready: Chain::with_limit(config.receive_pieces.saturating_sub(PIECES_OF_A_RING)),
            spilled_bytes: 0,
            waiting: Reassembly::with_limits(config.receive_pieces / 2, config.receive_pieces / 2),
            // Rounding may put the offered edge beyond the free space.
            spill: Spill::with_capacity(config.receive_buffer_bytes + (1 << offered_scale(config))),
            largest_text: LEAST_FULL_SEGMENT,
            received_rounds: 0,
            read_text: None,
        }
    }

    /// Changes the capacity to `bytes` bytes. Data stays, and so does the space inside the offered window.
    /// `pieces` is the minimum number of pieces of data to keep. Returns `true`, and allocates, only if
    /// anything changed.
    pub(crate) fn resize(&mut self, bytes: u32, pieces: usize) -> bool {
        let held = bytes.max(distance(self.read_at(), self.edge));
        if (bytes, held) == (self.capacity, self.held) {
            return false;
        }
        (self.capacity, self.held) = (bytes, held);
        self.waiting.set_most_runs(most_gaps(held, pieces));
        // Rounding may put the offered edge beyond the free space.
        let room = held + (1 << self.scale);
        if self.is_spilling() || self.waiting.has_spilled() {
            self.spill.resize(self.read_at(), room);
        } else {
            self.spill = Spill::with_capacity(room);
        }
        true
    }

    /// Frees the memory of a larger window that was offered before the buffer shrank, as far as the peer has
    /// used the window and the data was read. Returns `true` if any memory was freed.
    pub(crate) fn free_used_window(&mut self, pieces: usize) -> bool {
        self.capacity < self.held && self.resize(self.capacity, pieces)
    }

    /// Returns the capacity for received data, in bytes.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns the memory that received data may use, in bytes, not counting the ring into which data is
    /// copied.
    pub(crate) fn held_bytes(&self) -> u32 {
        self.held
    }

    /// Returns the right edge of the offered window, including pending ACKs.
    pub(crate) fn offered_edge(&self) -> SeqNumber {
        self.offered_edge
    }

    /// Sets the peer's initial sequence number, `irs`, and clears the state that depends on it.
    pub(crate) fn start(&mut self, irs: SeqNumber) {
        (self.irs, self.nxt) = (irs, irs + 1);
        self.edge = self.nxt + u32::from(self.syn_window());
        (self.offered_edge, self.advertised_edge) = (self.edge, self.edge);
        (self.knows_fin, self.sack) = (false, SackReport::default());
        self.waiting.clear();
    }

    /// Returns SEG.WND of a SYN, which is never scaled (RFC 7323, section 2.2).
    pub(crate) fn syn_window(&self) -> u16 {
        u16::try_from(self.capacity).unwrap_or(u16::MAX)
    }

    /// Returns RCV.WND, the window that the peer was offered, in bytes.
    pub(crate) fn wnd(&self) -> u32 {
        distance(self.nxt, self.advertised_edge)
    }

    /// Returns the estimate of the peer's full segment, in bytes (RFC 5681, section 4.2).
    pub(crate) fn full_segment(&self) -> u32 {
        self.largest_text.min(self.mss)
    }

    /// Returns `true` if out-of-order data waits.
    pub(crate) fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the SACK blocks of the next ACK.
    pub(crate) fn sack_blocks(&mut self) -> SackBlocks {
        self.sack.take(&self.waiting)
    }

    /// Returns the number of bytes of in-order data that the application has not consumed.
    pub(crate) fn ready_bytes(&self) -> usize {
        self.ready.len_bytes() + self.spilled_bytes as usize
    }

    /// Returns the pieces of in-order data that the application has not consumed.
    pub(crate) fn slices(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        Slices::new(self.ready.slices(), self.spilled())
    }

    /// Returns the part of the in-order data that was copied to the ring `spill`.
    fn spilled(&self) -> [&[u8]; 2] {
        self.spill.slices(before(self.text_end(), self.spilled_bytes), self.spilled_bytes)
    }

    /// Consumes up to `bytes` bytes of in-order data. Returns the number of bytes consumed.
    pub(crate) fn consume(&mut self, bytes: usize) -> usize {
        self.remember(bytes);
        let consumed = self.ready.advance(bytes);
        consumed + self.consume_spilled(bytes - consumed)
    }

    fn consume_spilled(&mut self, bytes: usize) -> usize {
        let consumed = bytes.min(self.spilled_bytes as usize);
        self.spilled_bytes -= consumed as u32;
        consumed
    }

    /// Copies in-order data into `to` and consumes it. Returns the number of bytes copied.
    pub(crate) fn read(&mut self, to: &mut [u8]) -> usize {
        self.remember(to.len());
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

    /// Returns `true` if in-order data was copied because the limit for buffers was reached.
    pub(crate) fn is_spilling(&self) -> bool {
        self.spilled_bytes > 0
    }

    /// Returns `true` if a buffer with in-order data before `seq` is kept.
    pub(crate) fn keeps_buffers_before(&self, seq: SeqNumber) -> bool {
        !self.ready.is_empty() && self.read_at().is_before(seq)
    }

    /// Returns `true` if a buffer with out-of-order data is kept.
    pub(crate) fn keeps_buffers_out_of_order(&self) -> bool {
        self.waiting.original_buffers() > 0
    }

    /// Returns the sequence number of the next byte that the application will read.
    pub(crate) fn read_at(&self) -> SeqNumber {
        before(self.text_end(), self.ready_bytes() as u32)
    }

    /// Returns the sequence number of the peer's FIN; `None` until it is known.
    #[inline]
    pub(crate) fn fin_at(&self) -> Option<SeqNumber> {
        self.knows_fin.then_some(self.fin)
    }

    /// Returns RCV.NXT without the peer's FIN: the end of the in-order data.
    fn text_end(&self) -> SeqNumber {
        self.fin_at().map_or(self.nxt, |at| earlier(at, self.nxt))
    }

    /// Moves all data into the buffers that `exchange` returns; data for which it returns `None` stays.
    pub(crate) fn exchange(&mut self, mut exchange: impl FnMut(&B, &[u8]) -> Option<B>) {
        self.ready.exchange(&mut exchange);
        self.waiting.exchange(&mut exchange);
    }

    /// Drops all received data.
    pub(crate) fn clear(&mut self) {
        self.consume(usize::MAX);
        self.waiting.clear();
    }

    /// Frees unused memory, which is allocated again when needed.
    pub(crate) fn free_unused(&mut self) {
        self.ready.free_unused();
        self.waiting.free_unused();
        if !self.is_spilling() && !self.waiting.has_spilled() {
            self.spill.free();
        }
    }

    /// Frees all memory except the memory of unread data. Call this method when no more data will be accepted.
    pub(crate) fn free_memory(&mut self) {
        self.waiting = Reassembly::with_limits(0, 0);
        if self.is_spilling() {
            // The ring of copies stays until all of it has been read.
            return;
        }
        self.spill = Spill::with_capacity(0);
        self.held = self.ready_bytes() as u32;
        if self.held == 0 {
            self.ready = Chain::with_limit(0);
        }
    }

    /// Returns the first contiguous part of the range `start` to `end` that was received before (RFC 2883,
    /// section 4); `None` if the whole range is new.
    pub(crate) fn duplicate_in(&self, start: SeqNumber, end: SeqNumber) -> Option<SackBlock> {
        if start.is_before(self.nxt) && start.is_before(end) {
            return Some(SackBlock { start, end: earlier(end, self.nxt) });
        }
        self.waiting.first_part(start, end)
    }

    /// Processes data at `seq`, which must be inside the window.
    pub(crate) fn accept(&mut self, seq: SeqNumber, payload: Payload<B>) -> Accepted {
        self.largest_text = self.largest_text.max(payload.bytes());
        if seq == self.nxt { self.append(payload) } else { self.keep(seq, payload) }
    }

    /// Returns the number of further buffers of in-order data that can be kept, while no out-of-order data
    /// waits.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        if self.is_spilling() { 0 } else { self.ready.room_pieces() }
    }

    /// Appends data at RCV.NXT, from a segment or from a GSO frame with segments of `size` bytes. No
    /// out-of-order data may be waiting.
    #[inline]
    pub(crate) fn append_expected(&mut self, payload: Payload<B>, size: u32) {
        self.largest_text = self.largest_text.max(size);
        if self.room() > 0 {
            self.push_ready(payload);
        } else {
            self.push_spilled(&payload);
        }
    }

    /// Appends the data `first` and the data at the same offset in each of the next `later` frames, at RCV.NXT.
    /// No out-of-order data may be waiting, and all buffers must fit. Returns the number of payloads appended.
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

    /// Accepts data by the slow path: out-of-order data waits, or the limit for buffers is reached.
    #[inline(never)]
    fn append_otherwise(&mut self, payload: Payload<B>) -> Accepted {
        let beside_a_gap = self.has_gap();
        self.push(Text::Lent(payload));
        while let Some(next) = self.waiting.take_at(self.nxt) {
            self.push(next);
        }
        Accepted::InOrder { beside_a_gap }
    }

    /// Appends data at RCV.NXT: by reference if its buffer can be kept, otherwise as a copy.
    fn push(&mut self, text: Text<B>) {
        match text {
            Text::Lent(payload) if !self.is_spilling() && self.may_lend() => {
                self.push_ready(payload);
            }
            Text::Lent(payload) => self.push_spilled(&payload),
            Text::Spilled(bytes) => self.count_spilled(bytes),
        }
    }

    /// Appends data at RCV.NXT as a copy in the ring `spill`.
    #[inline(never)]
    fn push_spilled(&mut self, payload: &Payload<B>) {
        self.make_room();
        self.spill.write(self.nxt, payload.as_slice());
        self.count_spilled(payload.bytes());
    }

    /// Counts `bytes` bytes at RCV.NXT that were copied to the ring `spill`.
    fn count_spilled(&mut self, bytes: u32) {
        self.spilled_bytes += bytes;
        self.advance(bytes);
    }

    /// Returns `true` if another buffer may be kept without a copy. Slots in `ready` are reserved for the
    /// buffers of out-of-order data.
    fn may_lend(&self) -> bool {
        self.ready.room_pieces() > self.waiting.original_buffers()
    }

    /// Reserves space for the whole window in the ring `spill`.
    fn make_room(&mut self) {
        let read_at = self.read_at();
        if self.is_spilling() || self.waiting.has_spilled() {
            self.spill.advance_to(read_at);
        } else {
            self.spill.begin_at(read_at);
        }
    }

    /// Appends data at RCV.NXT to `ready`. Inlined, because a call would cost a single segment 21 more instructions.
    #[inline(always)]
    fn push_ready(&mut self, payload: Payload<B>) {
        let bytes = payload.bytes();
        let (buffer, range) = payload.into_parts();
        // The buffer fits: see `may_lend`.
        if self.ready.push_known(buffer, range).is_ok() {
            self.advance(bytes);
        }
    }

    /// Moves RCV.NXT by `bytes` of in-order data, and counts wraps.
    #[inline]
    fn advance(&mut self, bytes: u32) {
        let nxt = self.nxt + bytes;
        if wraps_between(self.irs + 1, self.nxt, nxt) {
            self.received_rounds = self.received_rounds.wrapping_add(1);
        }
        self.nxt = nxt;
    }

    /// Returns the number of bytes of data that have arrived in order. The peer's SYN must have arrived.
    pub(crate) fn received_bytes(&self) -> u64 {
        let fin = u64::from(self.fin_at().is_some_and(|at| at.is_before(self.nxt)));
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

    /// Records that the peer has sent a FIN with the sequence number `at`, in place of any FIN recorded
    /// before. Ignores an out-of-order FIN if data after it has arrived.
    pub(crate) fn expect_fin(&mut self, at: SeqNumber) {
        if at == self.nxt || !self.is_passed(at) {
            (self.fin, self.knows_fin) = (at, true);
        }
    }

    /// Drops the recorded FIN if data after it has arrived: the peer cannot have sent such a FIN.
    pub(crate) fn drop_fin(&mut self) {
        self.knows_fin = self.knows_fin && !self.is_passed(self.fin);
    }

    /// Returns `true` if data at or after the sequence number `at` was received.
    fn is_passed(&self, at: SeqNumber) -> bool {
        at.is_before(self.nxt) || self.waiting.reaches_beyond(at)
    }
}

/// Returns the maximum number of gaps for a window of `bytes` bytes: half the number of pieces, or more in a
/// large window.
fn most_gaps(bytes: u32, pieces: usize) -> usize {
    (pieces / 2).max((bytes / BYTES_FOR_A_GAP) as usize)
}

/// The number of bytes of window for which one gap is allowed: every other segment may be missing if each has
/// 256 bytes or more.
const BYTES_FOR_A_GAP: u32 = 512;
/// The initial estimate of the peer's full segment, in bytes: the default MSS, which every peer may use (RFC
/// 9293, section 3.7.1).
const LEAST_FULL_SEGMENT: u32 = 536;
/// Maximum number of slices that a ring returns: two, because the data may wrap around its end.
const PIECES_OF_A_RING: usize = 2;

#[cfg(test)]
mod tests;
