//! Which acknowledgements are owed: how many, with which numbers, and when.
//!
//! Separate because this is what an aggregate must not change: text is counted segment by segment,
//! and what two segments alone would have caused, two segments of an aggregate cause
//! (Menon 2008, section 3.4). Those that only differ in number leave as one template (section 4).

use alloc::vec::Vec;

use rxo_wire::SeqNumber;

/// One acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOwed {
    /// SEG.ACK.
    pub ack: SeqNumber,
    /// SEG.WND as it shall stand in the header: each number with the window that has the same edge.
    pub window: u16,
    /// Says something that the next one does not repeat: a duplicate, with SACK.
    pub(crate) is_alone: bool,
}

/// Acknowledgements that are owed, oldest first. Room for all is allocated when made.
#[derive(Debug)]
pub(crate) struct Acks {
    owed: Vec<AckOwed>,
    /// The first of `owed` have left; they are kept for the caller to read until the next call.
    left: usize,
    /// Bytes of text that no owed acknowledgement covers.
    unacknowledged_bytes: u32,
    segment: Within,
    /// So many more segments are acknowledged at once.
    quick: u16,
    /// One became owed since [`Acks::take_news`]: what waits now, waits since then.
    has_news: bool,
}

/// What is being done, as far as it limits acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// No segment is being processed.
    Nothing,
    /// One is, and owes nothing yet.
    Unanswered,
    /// One is, and owes an acknowledgement.
    Answered,
}

impl Acks {
    /// `quick` segments are acknowledged at once before any acknowledgement is held back.
    pub(crate) fn new(quick: u16) -> Self {
        let owed = Vec::with_capacity(MOST_OWED);
        Self {
            owed,
            left: 0,
            unacknowledged_bytes: 0,
            segment: Within::Nothing,
            quick,
            has_news: false,
        }
    }

    /// A segment is going to be processed. Whatever is found in it, it causes one acknowledgement at
    /// most (RFC 5681, section 4.2).
    pub(crate) fn begin_segment(&mut self) {
        self.segment = Within::Unanswered;
    }

    /// It has been.
    pub(crate) fn end_segment(&mut self) {
        self.segment = Within::Nothing;
    }

    /// Counts a segment of `bytes` in order, all text before `nxt` now being here. Says whether an
    /// acknowledgement is owed for it now: for each second full segment (RFC 9293, section
    /// 3.8.6.3).
    #[inline]
    pub(crate) fn count(&mut self, bytes: u32, full_segment: u32, nxt: SeqNumber) -> bool {
        self.unacknowledged_bytes = self.unacknowledged_bytes.saturating_add(bytes);
        let is_owed = self.unacknowledged_bytes >= full_segment.saturating_mul(2) || self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        if is_owed {
            self.owe(nxt);
        }
        is_owed
    }

    /// Counts `count` segments of `bytes` each, the first of which begins at `seq`. Says what the first
    /// acknowledgement covers that is owed for them.
    #[inline]
    pub(crate) fn count_alike(
        &mut self,
        (bytes, count): (u32, u32),
        full_segment: u32,
        seq: SeqNumber,
    ) -> Option<SeqNumber> {
        let (mut nxt, mut first) = (seq, None);
        for _ in 0..count {
            nxt = nxt + bytes;
            if self.count(bytes, full_segment, nxt) {
                first = first.or(Some(nxt));
            }
        }
        first
    }

    /// Owes an acknowledgement of all before `nxt`.
    pub(crate) fn owe(&mut self, nxt: SeqNumber) {
        self.push(AckOwed { ack: nxt, window: 0, is_alone: false });
    }

    /// Owes one that must leave as a segment of its own: the peer counts duplicates, and each
    /// carries SACK blocks.
    pub(crate) fn owe_alone(&mut self, nxt: SeqNumber) {
        self.push(AckOwed { ack: nxt, window: 0, is_alone: true });
    }

    /// Owes the one that was held back, if any.
    pub(crate) fn owe_delayed(&mut self, nxt: SeqNumber) {
        if self.is_delaying() {
            self.owe(nxt);
        }
    }

    /// Whether text waits for its acknowledgement, and none is owed yet.
    pub(crate) fn is_delaying(&self) -> bool {
        self.unacknowledged_bytes > 0
    }

    /// Whether an acknowledgement became owed since the last call. Text that waits for its own then
    /// came after all that waited before.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.has_news)
    }

    /// How many are owed.
    pub(crate) fn count_owed(&self) -> usize {
        self.owed.len() - self.left
    }

    /// The last one that is owed.
    pub(crate) fn last_owed(&self) -> Option<SeqNumber> {
        self.owed.get(self.left..).and_then(<[AckOwed]>::last).map(|owed| owed.ack)
    }

    /// Makes one of the plain ones that came after the first `before`.
    pub(crate) fn stretch(&mut self, before: usize) {
        let first = self.left + before;
        let Some(last) = self.owed.last().copied() else { return };
        let is_plain = self.owed.get(first..).is_some_and(|new| new.iter().all(|a| !a.is_alone));
        if is_plain && self.owed.len() > first {
            self.owed.truncate(first);
            self.owed.push(last);
        }
    }

    /// Whether a segment with data that leaves now acknowledges all that is owed.
    pub(crate) fn can_ride_along(&self) -> bool {
        let owed = self.owed.get(self.left..).unwrap_or_default();
        owed.len() < 2 && owed.iter().all(|ack| !ack.is_alone)
    }

    /// A segment with SEG.ACK = RCV.NXT leaves; nothing is owed any more.
    pub(crate) fn ride_along(&mut self) {
        self.owed.clear();
        (self.left, self.unacknowledged_bytes) = (0, 0);
    }

    /// Takes the next ones that can leave together: one alone, or all plain ones up to the next
    /// that is not; `window` says each one's. Empty when none is owed.
    pub(crate) fn take(&mut self, window: impl Fn(SeqNumber) -> u16) -> core::ops::Range<usize> {
        self.owed.drain(..self.left);
        let plain = self.owed.iter().take_while(|ack| !ack.is_alone).count();
        self.left = if plain == 0 { self.owed.len().min(1) } else { plain };
        for ack in &mut self.owed[..self.left] {
            ack.window = window(ack.ack);
        }
        0..self.left
    }

    /// Those that [`Acks::take`] took.
    pub(crate) fn taken(&self) -> &[AckOwed] {
        &self.owed[..self.left]
    }

    fn push(&mut self, ack: AckOwed) {
        (self.unacknowledged_bytes, self.has_news) = (0, true);
        match (self.segment, self.owed.last_mut()) {
            (Within::Answered, Some(last)) => {
                *last = AckOwed { is_alone: last.is_alone || ack.is_alone, ..ack };
                return;
            }
            (Within::Unanswered, _) => self.segment = Within::Answered,
            _ => {}
        }
        if self.count_owed() == 0 {
            self.ride_along();
        } else if self.owed.len() == MOST_OWED {
            self.owed.drain(..self.left);
            self.left = 0;
        }
        if self.owed.len() < MOST_OWED {
            self.owed.push(ack);
        } else if let Some(last) = self.owed.last_mut() {
            // Nobody has sent for long: the last one covers what there is no room for.
            *last = ack;
        }
    }
}

/// Two aggregates of 64 segments.
const MOST_OWED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u32 = 1000;

    fn numbers(acks: &mut Acks) -> Vec<u32> {
        acks.take(|_| 7);
        acks.taken().iter().map(|ack| ack.ack.0).collect()
    }

    /// RFC 9293, section 3.8.6.3 (SHLD-18, 19); Menon 2008, section 3.4.
    #[test]
    fn every_second_full_segment_owes_one() {
        let mut acks = Acks::new(0);
        let owed: Vec<bool> =
            (1..=5).map(|n| acks.count(FULL, FULL, SeqNumber(n * FULL))).collect();
        assert_eq!(owed, [false, true, false, true, false]);
        assert_eq!(numbers(&mut acks), [2000, 4000]);
        assert!(acks.is_delaying());
        acks.owe_delayed(SeqNumber(5000));
        assert_eq!(numbers(&mut acks), [5000]);
        assert!(numbers(&mut acks).is_empty());
    }

    #[test]
    fn small_segments_wait_until_they_are_two_full_ones() {
        let mut acks = Acks::new(0);
        let owed = (1..=20).filter(|n| acks.count(100, FULL, SeqNumber(n * 100))).count();
        assert_eq!(owed, 1);
    }

    #[test]
    fn duplicates_leave_one_by_one_in_their_place() {
        let mut acks = Acks::new(0);
        acks.owe(SeqNumber(1));
        acks.owe(SeqNumber(2));
        acks.owe_alone(SeqNumber(2));
        acks.owe_alone(SeqNumber(2));
        acks.owe(SeqNumber(9));
        let all: Vec<_> = core::iter::repeat_with(|| numbers(&mut acks)).take(5).collect();
        assert_eq!(all, [&[1, 2][..], &[2], &[2], &[9], &[]]);
    }

    #[test]
    fn a_stretch_ack_is_the_last_one() {
        let mut acks = Acks::new(0);
        acks.owe(SeqNumber(1));
        let before = acks.count_owed();
        (2..9).for_each(|n| acks.owe(SeqNumber(n)));
        acks.stretch(before);
        assert_eq!(numbers(&mut acks), [1, 8]);
    }

    #[test]
    fn what_has_no_room_is_covered_by_the_last() {
        let mut acks = Acks::new(0);
        (0..100).for_each(|n| acks.owe(SeqNumber(n)));
        let numbers = numbers(&mut acks);
        assert_eq!((numbers.len(), numbers.last()), (MOST_OWED, Some(&99)));
    }
}
