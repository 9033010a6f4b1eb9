//! Reassembly of out-of-order data: the ranges that have arrived, and the location of their bytes in memory.

use alloc::collections::VecDeque;

use rxo_wire::SeqNumber;
use rxo_wire::tcp::SackBlock;

use super::spill::Spill;
use crate::segment::Payload;
use crate::sequence::{distance, earlier, later};

/// Out-of-order data: the ranges that have arrived, and the location of their bytes. A byte is in its original
/// buffer, or was copied to the [`Spill`] because there were too many buffers. Allocates memory when needed.
///
/// The ranges are a list of runs, eight bytes for each. Inserting one costs a binary search and moves at most
/// half of the list, whatever the peer sends.
#[derive(Debug)]
pub(crate) struct Reassembly<B> {
    /// Contiguous ranges of data, sorted. There is a gap between two runs.
    runs: VecDeque<SackBlock>,
    /// The received data that is in its original buffers, sorted, without overlap. All other data of the runs
    /// is in the spill.
    pieces: VecDeque<Piece<B>>,
    most_runs: usize,
    most_pieces: usize,
    /// The number of bytes of out-of-order data that are in the spill, a ring of copied data.
    spilled_bytes: u32,
}

#[derive(Debug)]
struct Piece<B> {
    start: SeqNumber,
    payload: Payload<B>,
}

/// The location of a part of the received data.
#[derive(Debug)]
pub(crate) enum Text<B> {
    /// The bytes are in their original buffer.
    Lent(Payload<B>),
    /// The bytes are in the spill. The number is their length.
    Spilled(u32),
}

impl<B> Text<B> {
    pub(crate) fn bytes(&self) -> u32 {
        match self {
            Self::Lent(payload) => payload.bytes(),
            Self::Spilled(bytes) => *bytes,
        }
    }
}

impl<B> Piece<B> {
    fn end(&self) -> SeqNumber {
        self.start + self.payload.bytes()
    }
}

/// The result of inserting a segment's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The data of the segment is kept. If a part was received before, only the new part is kept.
    Kept,
    /// The whole data of the segment was received before.
    Duplicate,
    /// The data was dropped because there are too many gaps. The peer will retransmit the data.
    NoRoom,
}

impl<B: AsRef<[u8]>> Reassembly<B> {
    /// Creates an empty reassembly for at most `pieces` buffers and `runs` runs.
    pub(crate) fn with_limits(pieces: usize, runs: usize) -> Self {
        Self {
            runs: VecDeque::new(),
            pieces: VecDeque::new(),
            most_runs: runs,
            most_pieces: pieces,
            spilled_bytes: 0,
        }
    }

    /// Changes the maximum number of contiguous runs to `runs`. Existing runs are kept, even if there are more.
    pub(crate) fn set_most_runs(&mut self, runs: usize) {
        self.most_runs = runs;
        self.runs.shrink_to(runs);
    }

    /// Frees the memory of the queues if no data is held.
    pub(crate) fn free_unused(&mut self) {
        if self.runs.is_empty() {
            (self.runs, self.pieces) = (VecDeque::new(), VecDeque::new());
        }
    }

    /// Returns the number of original buffers that are kept.
    pub(crate) fn original_buffers(&self) -> usize {
        self.pieces.len()
    }

    /// Returns `true` if any data is in the spill.
    pub(crate) fn has_spilled(&self) -> bool {
        self.spilled_bytes > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns `true` if a byte after `seq` was received.
    pub(crate) fn reaches_beyond(&self, seq: SeqNumber) -> bool {
        self.runs.back().is_some_and(|last| seq.is_before(last.end))
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.pieces.clear();
        self.spilled_bytes = 0;
    }

    /// Moves the data of each piece into the buffer that `exchange` returns. If `exchange` returns `None`, the
    /// data stays in its old buffer.
    pub(crate) fn exchange(&mut self, exchange: &mut impl FnMut(&B, &[u8]) -> Option<B>) {
        for piece in &mut self.pieces {
            piece.payload.exchange(&mut *exchange);
        }
    }

    /// Inserts `payload`, which begins at `start`. If bytes are received twice, keeps the old bytes, unless the
    /// new data covers a whole run. The data is copied unless `may_lend` is set and one more buffer may be
    /// kept.
    pub(crate) fn insert(
        &mut self,
        start: SeqNumber,
        payload: Payload<B>,
        may_lend: bool,
        spill: &mut Spill,
    ) -> Inserted {
        let all = SackBlock { start, end: start + payload.bytes() };
        // The indices of the runs that the data overlaps or touches.
        let first = self.runs.partition_point(|run| run.end.is_before(all.start));
        let next = self.runs.partition_point(|run| !all.end.is_before(run.start));
        let Some(new) = self.new_part(all, first, next) else { return Inserted::Duplicate };
        if first == next && self.runs.len() >= self.most_runs {
            return Inserted::NoRoom;
        }
        self.join(new, first, next);
        let payload = payload.truncated(distance(start, new.end));
        if let Some(payload) =
            payload.and_then(|text| text.without_front(distance(start, new.start)))
        {
            self.place(new, payload, may_lend, spill);
        }
        Inserted::Kept
    }

    /// Returns the range `all` without its overlap with the first and the last of the runs with the indices
    /// `first` to `next`; `None` if nothing is left.
    fn new_part(&self, all: SackBlock, first: usize, next: usize) -> Option<SackBlock> {
        let mut new = all;
        if let Some(run) = self.runs.get(first).filter(|run| !all.start.is_before(run.start)) {
            new.start = later(all.start, run.end);
        }
        let last = next.checked_sub(1).and_then(|last| self.runs.get(last));
        if let Some(run) = last.filter(|run| !run.end.is_before(all.end)) {
            new.end = earlier(all.end, run.start);
        }
        new.start.is_before(new.end).then_some(new)
    }

    /// Joins the range `new` and the runs with the indices `first` to `next` into one run, and drops the old
    /// data inside `new`.
    fn join(&mut self, new: SackBlock, first: usize, next: usize) {
        let covered = self.first_piece(new.start)..self.first_piece(new.end);
        for piece in self.pieces.drain(covered) {
            // Counted as spilled here, because the whole of a covered run is subtracted below.
            self.spilled_bytes += piece.payload.bytes();
        }
        let mut joined = new;
        for run in self.runs.range(first..next) {
            joined = SackBlock {
                start: earlier(joined.start, run.start),
                end: later(joined.end, run.end),
            };
            if !run.start.is_before(new.start) && !new.end.is_before(run.end) {
                self.spilled_bytes -= distance(run.start, run.end);
            }
        }
        if first == next {
            self.runs.insert(first, joined);
        } else {
            self.runs[first] = joined;
            self.runs.drain(first + 1..next);
        }
    }

    /// Returns the index of the first piece that begins at or after `seq`.
    fn first_piece(&self, seq: SeqNumber) -> usize {
        self.pieces.partition_point(|piece| piece.start.is_before(seq))
    }

    fn place(&mut self, new: SackBlock, payload: Payload<B>, may_lend: bool, spill: &mut Spill) {
        if may_lend && self.pieces.len() < self.most_pieces {
            let at = self.first_piece(new.start);
            self.pieces.insert(at, Piece { start: new.start, payload });
        } else {
            spill.write(new.start, payload.as_slice());
            self.spilled_bytes += payload.bytes();
        }
    }

    /// Removes and returns the data that begins at `nxt`; `None` if no data begins there. Drops data before
    /// `nxt`, because it was received before.
    pub(crate) fn take_at(&mut self, nxt: SeqNumber) -> Option<Text<B>> {
        self.drop_before(nxt);
        let run = self.runs.front_mut().filter(|run| run.start == nxt)?;
        let text = match self.pieces.front() {
            Some(piece) if piece.start == nxt => Text::Lent(self.pieces.pop_front()?.payload),
            Some(piece) => Text::Spilled(distance(nxt, earlier(piece.start, run.end))),
            None => Text::Spilled(distance(nxt, run.end)),
        };
        if let Text::Spilled(bytes) = text {
            self.spilled_bytes -= bytes;
        }
        run.start = nxt + text.bytes();
        if run.start == run.end {
            self.runs.pop_front();
        }
        Some(text)
    }

    fn drop_before(&mut self, nxt: SeqNumber) {
        while let Some(run) = self.runs.front_mut().filter(|run| run.start.is_before(nxt)) {
            let end = earlier(run.end, nxt);
            self.spilled_bytes += drop_pieces(&mut self.pieces, end);
            self.spilled_bytes -= distance(run.start, end);
            run.start = end;
            if run.start == run.end {
                self.runs.pop_front();
            }
        }
    }

    /// Returns the first contiguous part of the range `start` to `end` that was received; `None` if there is
    /// none.
    pub(crate) fn first_part(&self, start: SeqNumber, end: SeqNumber) -> Option<SackBlock> {
        let run = self.first_run_behind(start).filter(|run| run.start.is_before(end))?;
        Some(SackBlock { start: later(start, run.start), end: earlier(end, run.end) })
    }

    /// Returns the contiguous run of data around `seq`, or `None` if there is no data at `seq`.
    pub(crate) fn run_around(&self, seq: SeqNumber) -> Option<SackBlock> {
        self.first_run_behind(seq).filter(|run| seq.is_at_or_after(run.start))
    }

    /// Returns the first run that ends after `seq`; `None` if there is none.
    fn first_run_behind(&self, seq: SeqNumber) -> Option<SackBlock> {
        let at = self.runs.partition_point(|run| seq.is_at_or_after(run.end));
        self.runs.get(at).copied()
    }

    /// Copies the received data at `seq` to `to`. Returns `false` if the data does not lie in one run.
    pub(crate) fn copy(&self, seq: SeqNumber, to: &mut [u8], spill: &Spill) -> bool {
        let end = seq + to.len() as u32;
        let (mut at, mut copied) = (seq, 0);
        while at.is_before(end) {
            let next = self.pieces.partition_point(|piece| !at.is_before(piece.end()));
            let piece = self.pieces.get(next);
            let parts = match piece.filter(|piece| !at.is_before(piece.start)) {
                Some(piece) => {
                    [&piece.payload.as_slice()[distance(piece.start, at) as usize..], &[]]
                }
                None => {
                    let until = piece.map_or(end, |piece| earlier(piece.start, end));
                    spill.slices(at, distance(at, until))
                }
            };
            let before = copied;
            for part in parts {
                let part = &part[..part.len().min(to.len() - copied)];
                to[copied..copied + part.len()].copy_from_slice(part);
                copied += part.len();
            }
            if copied == before {
                return false;
            }
            at = seq + copied as u32;
        }
        true
    }

    /// Returns all contiguous runs of out-of-order data, in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = SackBlock> + '_ {
        self.runs.iter().copied()
    }
}

/// Drops the pieces before `end`, and the front of a piece that crosses `end`. Returns the number of bytes
/// dropped.
fn drop_pieces<B>(pieces: &mut VecDeque<Piece<B>>, end: SeqNumber) -> u32 {
    let mut dropped = 0;
    while pieces.front().is_some_and(|piece| piece.start.is_before(end)) {
        let Some(piece) = pieces.pop_front() else { break };
        let skip = distance(piece.start, earlier(piece.end(), end));
        dropped += skip;
        if let Some(payload) = piece.payload.without_front(skip) {
            pieces.push_front(Piece { start: end, payload });
        }
    }
    dropped
}
