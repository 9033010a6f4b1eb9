//! Which acknowledgements are owed: how many, what each says, and when.
//!
//! Separate because this is what an aggregate must not change: text is counted segment by segment,
//! and what two segments alone would have caused, two segments of an aggregate cause
//! (Menon 2008, section 3.4). What each says is fixed when it becomes owed, so that it says what it
//! would have said had it left then. Those that only differ in numbers leave as one template (section 4).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use rxo_wire::SeqNumber;

use crate::options::SackBlocks;

/// One acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOwed {
    /// SEG.ACK.
    pub ack: SeqNumber,
    /// TSecr; without meaning where timestamps are not in use.
    pub echo: u32,
    /// SEG.WND as it shall stand in the header.
    pub window: u16,
    /// Whether a router's mark is echoed.
    pub(crate) has_mark: bool,
    pub(crate) kind: AckKind,
}

/// How an acknowledgement leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckKind {
    /// Together with others that differ in numbers only, or beside text.
    Plain,
    /// As a segment of its own: the peer counts duplicates.
    Alone,
    /// So too, with the next of the SACK options that wait.
    AloneWithSack,
}

/// Acknowledgements that are owed, oldest first. Room for all is allocated when made.
#[derive(Debug)]
pub(crate) struct Acks {
    owed: Vec<AckOwed>,
    /// What those of them report that have SACK blocks, in their order.
    sacks: VecDeque<SackBlocks>,
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
    Answered {
        /// Which leaves as a segment of its own.
        is_alone: bool,
    },
}

impl Acks {
    /// `quick` segments are acknowledged at once before any acknowledgement is held back.
    pub(crate) fn new(quick: u16) -> Self {
        Self {
            owed: Vec::with_capacity(MOST_OWED),
            sacks: VecDeque::with_capacity(MOST_OWED),
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

    /// It has been. Says whether it owes an acknowledgement, and then whether one alone.
    pub(crate) fn end_segment(&mut self) -> Option<bool> {
        match core::mem::replace(&mut self.segment, Within::Nothing) {
            Within::Answered { is_alone } => Some(is_alone),
            _ => None,
        }
    }

    /// The segment that is being processed owes an acknowledgement.
    pub(crate) fn answer(&mut self) {
        let is_alone = self.segment == Within::Answered { is_alone: true };
        self.segment = Within::Answered { is_alone };
    }

    /// It owes one that must leave as a segment of its own: the peer counts duplicates, and each
    /// carries SACK blocks.
    pub(crate) fn answer_alone(&mut self) {
        self.segment = Within::Answered { is_alone: true };
    }

    /// Counts a segment of `bytes` in order. Says whether an acknowledgement is owed for it now: for each
    /// second full segment (RFC 9293, section 3.8.6.3).
    #[inline]
    pub(crate) fn count(&mut self, bytes: u32, full_segment: u32) -> bool {
        self.unacknowledged_bytes = self.unacknowledged_bytes.saturating_add(bytes);
        let is_owed = self.unacknowledged_bytes >= full_segment.saturating_mul(2) || self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        is_owed
    }

    /// The same for `count` segments of `bytes` each, up to the first that owes an acknowledgement: says how
    /// many that were, and whether the last of them owes one.
    #[inline]
    pub(crate) fn count_alike(
        &mut self,
        (bytes, count): (u32, u32),
        full_segment: u32,
    ) -> (u32, bool) {
        let lacking = full_segment.saturating_mul(2).saturating_sub(self.unacknowledged_bytes);
        // Full segments need no division.
        let needed = match bytes {
            _ if self.quick > 0 || lacking <= bytes => 1,
            _ if lacking - bytes <= bytes => 2,
            _ => lacking.div_ceil(bytes.max(1)),
        };
        let counted = needed.min(count);
        self.unacknowledged_bytes = self.unacknowledged_bytes.saturating_add(counted * bytes);
        self.quick = self.quick.saturating_sub(1);
        (counted, counted == needed)
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

    /// Makes one of the plain ones that came after the first `before`: it covers all of them, and echoes
    /// what the first does (RFC 7323, section 4.3).
    pub(crate) fn stretch(&mut self, before: usize) {
        let first = self.left + before;
        let Some(new) = self.owed.get(first..) else { return };
        if let [earliest, .., last] = new
            && new.iter().all(|ack| ack.kind == AckKind::Plain)
        {
            let one = AckOwed { echo: earliest.echo, ..*last };
            self.owed.truncate(first);
            self.owed.push(one);
        }
    }

    /// Whether a segment with data that leaves now acknowledges all that is owed.
    pub(crate) fn can_ride_along(&self) -> bool {
        let owed = self.owed.get(self.left..).unwrap_or_default();
        owed.len() < 2 && owed.iter().all(|ack| ack.kind == AckKind::Plain)
    }

    /// A segment with SEG.ACK = RCV.NXT leaves, or the connection ends; nothing is owed any more.
    pub(crate) fn ride_along(&mut self) {
        self.owed.clear();
        self.sacks.clear();
        (self.left, self.unacknowledged_bytes) = (0, 0);
        if self.segment != Within::Nothing {
            self.segment = Within::Unanswered;
        }
    }

    /// Takes the next ones that can leave together: one alone, or all plain ones up to the next that is
    /// not, or is marked where they are not. Gives the first and its SACK blocks; [`Acks::later`] has the
    /// others. `None` when none is owed.
    pub(crate) fn take(&mut self) -> Option<(AckOwed, SackBlocks)> {
        self.owed.drain(..self.left);
        self.left = 0;
        let first = self.owed.first().copied()?;
        let is_alike =
            |ack: &&AckOwed| (ack.kind, ack.has_mark) == (AckKind::Plain, first.has_mark);
        self.left = self.owed.iter().take_while(is_alike).count().max(1);
        let has_sack = first.kind == AckKind::AloneWithSack;
        let sack = has_sack.then(|| self.sacks.pop_front()).flatten().unwrap_or_default();
        Some((first, sack))
    }

    /// Those that [`Acks::take`] took behind the first.
    pub(crate) fn later(&self) -> &[AckOwed] {
        self.owed.get(1..self.left).unwrap_or_default()
    }

    /// Whether the last one has not left, is of all before `nxt`, and may say another window.
    pub(crate) fn may_update(&self, nxt: SeqNumber) -> bool {
        let last = self.owed.get(self.left..).and_then(<[AckOwed]>::last);
        last.is_some_and(|last| last.ack == nxt && last.kind != AckKind::Alone)
    }

    /// The last one says `window`.
    pub(crate) fn update(&mut self, window: u16) {
        if let Some(last) = self.owed.last_mut() {
            last.window = window;
        }
    }

    /// Owes `ack`, which reports `sack`.
    pub(crate) fn owe_with(&mut self, ack: AckOwed, sack: SackBlocks) {
        self.owe(ack);
        if let Some(last) = self.owed.last_mut()
            && !sack.is_empty()
            && self.sacks.len() < self.sacks.capacity()
        {
            last.kind = AckKind::AloneWithSack;
            self.sacks.push_back(sack);
        }
    }

    /// Owes `ack`, which reports nothing.
    #[inline]
    pub(crate) fn owe(&mut self, ack: AckOwed) {
        (self.unacknowledged_bytes, self.has_news) = (0, true);
        if self.owed.len() == MOST_OWED {
            self.owed.drain(..self.left);
            self.left = 0;
        }
        if self.owed.len() == MOST_OWED {
            self.forget_last();
        }
        self.owed.push(ack);
    }

    /// Nobody has sent for long: the next one covers what there is no room for.
    fn forget_last(&mut self) {
        if self.owed.pop().is_some_and(|last| last.kind == AckKind::AloneWithSack) {
            self.sacks.pop_back();
        }
    }

    /// Few will be owed: gives back what held more.
    pub(crate) fn give_back(&mut self) {
        if self.sacks.is_empty() {
            self.sacks = VecDeque::with_capacity(FEW_SACKS);
        }
    }
}

/// What answers a FIN that comes again.
const FEW_SACKS: usize = 4;
/// Two aggregates of 64 segments.
const MOST_OWED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SackBlock;

    const FULL: u32 = 1000;

    fn plain(number: u32) -> AckOwed {
        let ack = SeqNumber(number);
        AckOwed { ack, echo: number, window: 7, has_mark: false, kind: AckKind::Plain }
    }

    fn alone(number: u32) -> AckOwed {
        AckOwed { kind: AckKind::Alone, ..plain(number) }
    }

    fn taken(acks: &mut Acks) -> Vec<AckOwed> {
        let first = acks.take().map(|(first, _)| first);
        first.into_iter().chain(acks.later().iter().copied()).collect()
    }

    fn numbers(acks: &mut Acks) -> Vec<u32> {
        taken(acks).iter().map(|ack| ack.ack.0).collect()
    }

    fn blocks(start: u32) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        blocks.push(SackBlock { start: SeqNumber(start), end: SeqNumber(start + 1) });
        blocks
    }

    /// RFC 9293, section 3.8.6.3 (SHLD-18, 19); Menon 2008, section 3.4.
    #[test]
    fn every_second_full_segment_owes_one() {
        let mut acks = Acks::new(0);
        let owed = [1, 2, 3, 4, 5].map(|number| {
            let is_owed = acks.count(FULL, FULL);
            if is_owed {
                acks.owe(plain(number));
            }
            is_owed
        });
        assert_eq!(owed, [false, true, false, true, false]);
        assert_eq!(numbers(&mut acks), [2, 4]);
        assert!(acks.is_delaying());
        assert!(numbers(&mut acks).is_empty());
    }

    #[test]
    fn small_segments_wait_until_they_are_two_full_ones() {
        let mut acks = Acks::new(0);
        assert_eq!((0..20).find(|_| acks.count(100, FULL)), Some(19));
    }

    #[test]
    fn alike_ones_are_counted_as_each_alone_would_be() {
        for (bytes, quick) in
            (1..=2 * FULL + 1).step_by(7).flat_map(|bytes| [(bytes, 0), (bytes, 3)])
        {
            let (mut alone, mut together) = (Acks::new(quick), Acks::new(quick));
            for acks in [&mut alone, &mut together] {
                acks.count(FULL / 3, FULL);
            }
            let mut left = 40;
            while left > 0 {
                let (counted, is_owed) = together.count_alike((bytes, left), FULL);
                let each: Vec<_> = (0..counted).map(|_| alone.count(bytes, FULL)).collect();
                let first = each.iter().position(|is_owed| *is_owed);
                assert_eq!(
                    first,
                    is_owed.then_some(each.len() - 1),
                    "{bytes} bytes, {quick} quick"
                );
                if is_owed {
                    alone.owe(plain(left));
                    together.owe(plain(left));
                }
                left -= counted;
            }
            assert_eq!(alone.unacknowledged_bytes, together.unacknowledged_bytes);
            assert_eq!(alone.quick, together.quick);
        }
    }

    /// Each with the blocks that it was owed with.
    #[test]
    fn duplicates_leave_one_by_one_in_their_place() {
        let mut acks = Acks::new(0);
        acks.owe(plain(1));
        acks.owe(plain(2));
        acks.owe_with(alone(2), blocks(5));
        acks.owe(alone(2));
        acks.owe_with(alone(2), blocks(6));
        acks.owe(plain(9));
        let mut next = || acks.take().map(|(_, sack)| (sack, acks.later().len()));
        let none = SackBlocks::default();
        let expected = [(none, 1), (blocks(5), 0), (none, 0), (blocks(6), 0), (none, 0)];
        assert_eq!([(); 5].map(|()| next()), expected.map(Some));
        assert_eq!(next(), None);
    }

    /// RFC 7323, section 4.3: what covers several echoes the first.
    #[test]
    fn a_stretch_ack_is_the_last_one_with_the_echo_of_the_first() {
        let mut acks = Acks::new(0);
        acks.owe(plain(1));
        let before = acks.count_owed();
        (2..9).for_each(|n| acks.owe(plain(n)));
        acks.stretch(before);
        let said: Vec<_> = taken(&mut acks).iter().map(|ack| (ack.ack.0, ack.echo)).collect();
        assert_eq!(said, [(1, 1), (8, 2)]);
    }

    /// RFC 3168, section 6.1.3: those before the mark do not echo it.
    #[test]
    fn marked_ones_leave_apart() {
        let mut acks = Acks::new(0);
        acks.owe(plain(1));
        acks.owe(plain(2));
        acks.owe(AckOwed { has_mark: true, ..plain(3) });
        assert_eq!(numbers(&mut acks), [1, 2]);
        assert_eq!(numbers(&mut acks), [3]);
    }

    #[test]
    fn what_has_no_room_is_covered_by_the_last() {
        let mut acks = Acks::new(0);
        (0..100).for_each(|n| acks.owe(plain(n)));
        let many = numbers(&mut acks);
        assert_eq!((many.len(), many.last()), (MOST_OWED, Some(&99)));
        (0..100).for_each(|n| acks.owe_with(alone(n), blocks(n)));
        let all: Vec<_> = core::iter::from_fn(|| acks.take()).collect();
        let last = all.last().map(|(ack, sack)| (ack.ack.0, *sack));
        assert_eq!((all.len(), last), (MOST_OWED, Some((99, blocks(99)))));
    }
}
