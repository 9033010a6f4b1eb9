//! Out-of-order text.

use alloc::collections::VecDeque;

use rxo_wire::SeqNumber;

use super::spill::Spill;
use crate::options::SackBlock;
use crate::segment::Payload;
use crate::sequence::{distance, earlier, later};

/// Pieces of out-of-order text, sorted, without overlap. Each is in the buffer that it came in, or was
/// copied to the [`Spill`] because there were too many. Allocates its memory when it is used.
#[derive(Debug)]
pub(crate) struct Reassembly<B> {
    pieces: VecDeque<Piece<B>>,
    limit: usize,
    /// How many are in the buffer that they came in.
    lent: usize,
}

#[derive(Debug)]
struct Piece<B> {
    start: SeqNumber,
    text: Text<B>,
}

/// Where the bytes of a piece are.
#[derive(Debug)]
pub(crate) enum Text<B> {
    /// In the buffer that they came in.
    Lent(Payload<B>),
    /// In the spill. The number is their length.
    Spilled(u32),
}

impl<B> Text<B> {
    pub(crate) fn bytes(&self) -> u32 {
        match self {
            Self::Lent(payload) => payload.bytes(),
            Self::Spilled(bytes) => *bytes,
        }
    }

    /// The piece without its first `bytes`; `None` if nothing is left.
    fn without_front(self, bytes: u32) -> Option<Self> {
        match self {
            Self::Lent(payload) => payload.without_front(bytes).map(Self::Lent),
            Self::Spilled(length) => {
                Some(Self::Spilled(length.saturating_sub(bytes))).filter(|text| text.bytes() > 0)
            }
        }
    }
}

impl<B> Piece<B> {
    fn end(&self) -> SeqNumber {
        self.start + self.text.bytes()
    }

    fn is_spilled(&self) -> bool {
        matches!(self.text, Text::Spilled(_))
    }
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// All of it, or its new part, is kept.
    Kept,
    /// All of it was received before.
    Duplicate,
    /// There are too many gaps; the peer will send it again.
    NoRoom,
}

/// Where a piece goes: its new part, and how many pieces from `at` on it covers.
#[derive(Clone, Copy, Debug)]
struct Slot {
    at: usize,
    covered: usize,
    start: SeqNumber,
    end: SeqNumber,
}

impl<B: AsRef<[u8]>> Reassembly<B> {
    pub(crate) fn with_limit(pieces: usize) -> Self {
        Self { pieces: VecDeque::new(), limit: pieces, lent: 0 }
    }

    /// Allows `pieces`; those that are kept stay.
    pub(crate) fn set_limit(&mut self, pieces: usize) {
        self.limit = pieces;
        self.pieces.shrink_to(pieces);
    }

    /// Frees the memory if there are no pieces.
    pub(crate) fn free_unused(&mut self) {
        if self.pieces.is_empty() {
            self.pieces = VecDeque::new();
        }
    }

    /// How many buffers are kept.
    pub(crate) fn lent(&self) -> usize {
        self.lent
    }

    /// Whether any text is in the spill.
    pub(crate) fn has_spilled(&self) -> bool {
        self.lent < self.pieces.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether a byte after `seq` was received.
    pub(crate) fn reaches_beyond(&self, seq: SeqNumber) -> bool {
        self.pieces.back().is_some_and(|last| seq.is_before(last.end()))
    }

    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.lent = 0;
    }

    /// Moves the text of each piece into the buffer that `exchange` makes of it.
    pub(crate) fn exchange(&mut self, exchange: &mut impl FnMut(&B, &[u8]) -> Option<B>) {
        for piece in &mut self.pieces {
            if let Text::Lent(payload) = &mut piece.text {
                payload.exchange(&mut *exchange);
            }
        }
    }

    /// Inserts `payload`, which begins at `start`. Bytes that were received before stay, unless the new piece
    /// covers an old one completely. The text is copied unless `may_lend`. If there are too many pieces, all
    /// are copied, which leaves one for each run. Costs O(pieces behind it).
    pub(crate) fn insert(
        &mut self,
        start: SeqNumber,
        payload: Payload<B>,
        may_lend: bool,
        spill: &mut Spill,
    ) -> Inserted {
        let end = start + payload.bytes();
        let Some(mut slot) = self.slot(start, end) else { return Inserted::Duplicate };
        let has_place = self.pieces.len() - slot.covered < self.limit;
        if !has_place {
            self.gather(spill);
            let Some(anew) = self.slot(start, end) else { return Inserted::Duplicate };
            slot = anew;
            if self.pieces.len() - slot.covered >= self.limit && !self.touches(&slot) {
                return Inserted::NoRoom;
            }
        }
        let gone = self.pieces.drain(slot.at..slot.at + slot.covered);
        self.lent -= gone.filter(|piece| !piece.is_spilled()).count();
        let cut = (distance(start, slot.start), distance(start, slot.end));
        let new = payload.truncated(cut.1).and_then(|payload| payload.without_front(cut.0));
        if let Some(payload) = new {
            self.place(slot, payload, may_lend && has_place, spill);
        }
        Inserted::Kept
    }

    /// Where the text from `start` to `end` goes; `None` if all of it was received before.
    fn slot(&self, start: SeqNumber, end: SeqNumber) -> Option<Slot> {
        let at = self.pieces.partition_point(|piece| piece.start.is_before(start));
        let before_end = at.checked_sub(1).map_or(start, |index| self.pieces[index].end());
        let start = later(start, before_end);
        let whole = |piece: &&Piece<B>| end.is_at_or_after(piece.end());
        let covered = self.pieces.iter().skip(at).take_while(whole).count();
        let end = self.pieces.get(at + covered).map_or(end, |next| earlier(end, next.start));
        start.is_before(end).then_some(Slot { at, covered, start, end })
    }

    /// Whether the piece continues a run, so that it needs no place of its own once all are copied.
    fn touches(&self, slot: &Slot) -> bool {
        let before = slot.at.checked_sub(1).map(|index| self.pieces[index].end());
        let after = self.pieces.get(slot.at + slot.covered).map(|piece| piece.start);
        before == Some(slot.start) || after == Some(slot.end)
    }

    fn place(&mut self, slot: Slot, payload: Payload<B>, is_lent: bool, spill: &mut Spill) {
        if is_lent {
            self.lent += 1;
            self.pieces.insert(slot.at, Piece { start: slot.start, text: Text::Lent(payload) });
            return;
        }
        spill.write(slot.start, payload.as_slice());
        let mut new = Piece { start: slot.start, text: Text::Spilled(payload.bytes()) };
        let joins = |a: &Piece<B>, b: &Piece<B>| a.is_spilled() && a.end() == b.start;
        let mut at = slot.at;
        if let Some(next) =
            self.pieces.get(at).filter(|next| next.is_spilled() && joins(&new, next))
        {
            new.text = Text::Spilled(distance(new.start, next.end()));
            self.pieces.remove(at);
        }
        if let Some(last) = at.checked_sub(1).and_then(|index| self.pieces.get(index))
            && joins(last, &new)
        {
            new = Piece { start: last.start, text: Text::Spilled(distance(last.start, new.end())) };
            at -= 1;
            self.pieces.remove(at);
        }
        self.pieces.insert(at, new);
    }

    /// Copies every piece, and joins those that touch.
    fn gather(&mut self, spill: &mut Spill) {
        let mut kept: usize = 0;
        for index in 0..self.pieces.len() {
            let piece = &self.pieces[index];
            let (start, end) = (piece.start, piece.end());
            if let Text::Lent(payload) = &piece.text {
                spill.write(start, payload.as_slice());
            }
            match kept.checked_sub(1).and_then(|last| self.pieces.get_mut(last)) {
                Some(last) if last.end() == start => {
                    last.text = Text::Spilled(distance(last.start, end));
                }
                _ => {
                    self.pieces[kept] = Piece { start, text: Text::Spilled(distance(start, end)) };
                    kept += 1;
                }
            }
        }
        self.pieces.truncate(kept);
        self.lent = 0;
    }

    /// Takes the text at `nxt`, if there is some. Text before `nxt` is a duplicate and is dropped.
    pub(crate) fn take_at(&mut self, nxt: SeqNumber) -> Option<Text<B>> {
        while let Some(first) = self.pieces.front() {
            if nxt.is_before(first.start) {
                return None;
            }
            let skip = distance(first.start, nxt);
            let piece = self.pieces.pop_front()?;
            self.lent -= usize::from(!piece.is_spilled());
            if let Some(text) = piece.text.without_front(skip) {
                return Some(text);
            }
        }
        None
    }

    /// The first contiguous part of `start` to `end` that was received.
    pub(crate) fn first_part(&self, start: SeqNumber, end: SeqNumber) -> Option<SackBlock> {
        let at = self.pieces.partition_point(|piece| start.is_at_or_after(piece.end()));
        let mut pieces = self.pieces.iter().skip(at).take_while(|piece| piece.start.is_before(end));
        let first = pieces.next()?;
        let part = pieces.fold((first.end(), true), |(reached, joins), piece| {
            let joins = joins && piece.start == reached;
            (if joins { piece.end() } else { reached }, joins)
        });
        Some(SackBlock { start: later(start, first.start), end: earlier(end, part.0) })
    }

    /// The contiguous run of text around `seq`, if there is text at `seq`. Costs O(pieces).
    pub(crate) fn run_around(&self, seq: SeqNumber) -> Option<SackBlock> {
        self.runs().find(|run| seq.is_at_or_after(run.start) && seq.is_before(run.end))
    }

    /// All contiguous runs, in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = SackBlock> + '_ {
        let mut pieces = self.pieces.iter().peekable();
        core::iter::from_fn(move || {
            let first = pieces.next()?;
            let mut run = SackBlock { start: first.start, end: first.end() };
            while let Some(next) = pieces.next_if(|next| next.start == run.end) {
                run.end = next.end();
            }
            Some(run)
        })
    }
}
