//! Text that arrived before what comes in front of it.

use alloc::collections::VecDeque;

use rxo_wire::SeqNumber;

use crate::options::SackBlock;
use crate::segment::Payload;
use crate::sequence::{distance, earlier, later};

/// Pieces of text out of order: sorted, none overlaps another, each in the buffer it came in.
/// Room for a fixed number is allocated when made.
#[derive(Debug)]
pub(crate) struct Reassembly<B> {
    pieces: VecDeque<Piece<B>>,
    limit: usize,
}

#[derive(Debug)]
struct Piece<B> {
    start: SeqNumber,
    payload: Payload<B>,
}

impl<B> Piece<B> {
    fn end(&self) -> SeqNumber {
        self.start + self.payload.bytes()
    }
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// It is kept, all of it or what was new.
    Kept {
        /// The part that was here before.
        duplicate: Option<SackBlock>,
    },
    /// All of it was here before.
    Duplicate,
    /// There is no room; the peer will send it again.
    NoRoom,
}

impl<B> Reassembly<B> {
    pub(crate) fn with_limit(pieces: usize) -> Self {
        Self { pieces: VecDeque::with_capacity(pieces), limit: pieces }
    }

    /// How many pieces.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Puts the text of each piece into the buffer that `exchange` makes of it.
    pub(crate) fn exchange(&mut self, exchange: &mut impl FnMut(&B, &[u8]) -> Option<B>)
    where
        B: AsRef<[u8]>,
    {
        self.pieces.iter_mut().for_each(|piece| piece.payload.exchange(&mut *exchange));
    }

    /// Puts `payload`, which begins at `start`, in its place. Of bytes that are here already, those
    /// that came first stay, unless the new piece covers theirs on both sides. Costs the pieces
    /// after it.
    pub(crate) fn insert(&mut self, start: SeqNumber, payload: Payload<B>) -> Inserted {
        let end = start + payload.bytes();
        let at = self.pieces.partition_point(|piece| piece.start.is_before(start));
        let before_end = at.checked_sub(1).map_or(start, |index| self.pieces[index].end());
        let new_start = later(start, before_end);
        if new_start.is_at_or_after(end) {
            return Inserted::Duplicate;
        }
        let covered = self.covered(at, end);
        let new_end = self.pieces.get(at + covered).map_or(end, |next| earlier(end, next.start));
        let duplicate = self.duplicate((start, end), (new_start, new_end), at, covered);
        if new_start.is_at_or_after(new_end) {
            return Inserted::Duplicate;
        }
        if self.pieces.len() - covered >= self.limit {
            return Inserted::NoRoom;
        }
        self.pieces.drain(at..at + covered);
        self.place(at, new_start, payload, (distance(start, new_start), distance(start, new_end)));
        Inserted::Kept { duplicate }
    }

    /// How many pieces from `at` on lie before `end` as a whole.
    fn covered(&self, at: usize, end: SeqNumber) -> usize {
        self.pieces.iter().skip(at).take_while(|piece| end.is_at_or_after(piece.end())).count()
    }

    /// The first part of the piece that was here before.
    fn duplicate(
        &self,
        (start, end): (SeqNumber, SeqNumber),
        (new_start, new_end): (SeqNumber, SeqNumber),
        at: usize,
        covered: usize,
    ) -> Option<SackBlock> {
        if start != new_start {
            return Some(SackBlock { start, end: new_start });
        }
        if covered > 0 {
            return self.pieces.get(at).map(|p| SackBlock { start: p.start, end: p.end() });
        }
        (new_end != end).then_some(SackBlock { start: new_end, end })
    }

    fn place(&mut self, at: usize, start: SeqNumber, payload: Payload<B>, cut: (u32, u32)) {
        let trimmed = payload.truncated(cut.1).and_then(|payload| payload.without_front(cut.0));
        if let Some(payload) = trimmed {
            self.pieces.insert(at, Piece { start, payload });
        }
    }

    /// Takes the text at `nxt`, if it is here; what lies before `nxt` is dropped on the way, and shown:
    /// it came a second time.
    pub(crate) fn take_at(
        &mut self,
        nxt: SeqNumber,
        mut again: impl FnMut(SackBlock),
    ) -> Option<Payload<B>> {
        while let Some(first) = self.pieces.front() {
            if nxt.is_before(first.start) {
                return None;
            }
            let skip = distance(first.start, nxt);
            let piece = self.pieces.pop_front()?;
            if skip > 0 {
                again(SackBlock { start: piece.start, end: earlier(piece.end(), nxt) });
            }
            if let Some(payload) = piece.payload.without_front(skip) {
                return Some(payload);
            }
        }
        None
    }

    /// The contiguous run of text around `seq`, if there is text at it. Costs the pieces.
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
