//! Which acknowledgements are owed: how many, what each says, and when.
//!
//! Separate because aggregation must not change it: text is counted segment by segment, so the segments of
//! an aggregate cause the acknowledgements that they would have caused alone (Menon and Zwaenepoel 2008,
//! section 3.4). The content of each is fixed when it becomes owed, as if it were sent then. Those that
//! differ in numbers only are sent as one template (section 4).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use rxo_wire::SeqNumber;

use crate::options::SackBlocks;

/// One acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOwed {
    /// SEG.ACK.
    pub ack: SeqNumber,
    /// TSecr; means nothing without timestamps.
    pub echo: u32,
    /// SEG.WND as it stands in the header.
    pub window: u16,
    /// Whether ECE is set.
    pub(crate) has_mark: bool,
    pub(crate) kind: AckKind,
}

/// How an acknowledgement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckKind {
    /// Together with others that differ in numbers only, or beside text.
    Plain,
    /// As a segment of its own: the peer counts duplicates.
    Alone,
    /// As a segment of its own, with the next SACK option that waits.
    AloneWithSack,
}

/// The acknowledgements that are owed, oldest first. Allocates its memory when it is used.
#[derive(Debug)]
pub(crate) struct Acks {
    owed: Vec<AckOwed>,
    /// The SACK blocks of those that have some, in their order.
    sacks: VecDeque<SackBlocks>,
    /// How many of the first of `owed` were sent. They are kept until the next call, for the caller to read.
    left: usize,
    /// Bytes of text that no owed acknowledgement covers.
    unacknowledged_bytes: u32,
    segment: Within,
    /// How many more segments are acknowledged at once.
    quick: u16,
    /// Whether one became owed since [`Acks::take_news`].
    has_news: bool,
}

/// The segment that is being processed: it owes at most one acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// No segment is being processed.
    Nothing,
    /// A segment is being processed, and owes nothing yet.
    Unanswered,
    /// A segment is being processed, and owes an acknowledgement.
    Answered {
        /// Whether that is sent as a segment of its own.
        is_alone: bool,
    },
}

impl Acks {
    /// No acknowledgement is owed. The first `quick` segments are acknowledged at once.
    pub(crate) fn new(quick: u16) -> Self {
        Self {
            owed: Vec::new(),
            sacks: VecDeque::new(),
            left: 0,
            unacknowledged_bytes: 0,
            segment: Within::Nothing,
            quick,
            has_news: false,
        }
    }

    /// Begins the processing of a segment, which causes at most one acknowledgement (RFC 5681, section
    /// 4.2).
    pub(crate) fn begin_segment(&mut self) {
        self.segment = Within::Unanswered;
    }

    /// Ends the processing of a segment. `Some` if it owes an acknowledgement, with whether that is sent as a
    /// segment of its own.
    pub(crate) fn end_segment(&mut self) -> Option<bool> {
        match core::mem::replace(&mut self.segment, Within::Nothing) {
            Within::Answered { is_alone } => Some(is_alone),
            _ => None,
        }
    }

    /// Makes the segment that is being processed owe an acknowledgement.
    pub(crate) fn answer(&mut self) {
        let is_alone = self.segment == Within::Answered { is_alone: true };
        self.segment = Within::Answered { is_alone };
    }

    /// Makes the segment that is being processed owe an acknowledgement that is sent as a segment of its own:
    /// the peer counts duplicates, and each carries SACK blocks.
    pub(crate) fn answer_alone(&mut self) {
        self.segment = Within::Answered { is_alone: true };
    }

    /// Counts a segment of `bytes` in order. Returns whether it owes an acknowledgement, as each second full
    /// segment does (RFC 9293, section 3.8.6.3).
    #[inline]
    pub(crate) fn count(&mut self, bytes: u32, full_segment: u32) -> bool {
        self.unacknowledged_bytes = self.unacknowledged_bytes.saturating_add(bytes);
        let is_owed = self.unacknowledged_bytes >= full_segment.saturating_mul(2) || self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        is_owed
    }

    /// Counts segments of `bytes` each, up to the first that owes an acknowledgement, at most `count`. Returns
    /// how many it counted, and whether the last of them owes one.
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

    /// Whether text waits for a delayed acknowledgement.
    pub(crate) fn is_delaying(&self) -> bool {
        self.unacknowledged_bytes > 0
    }

    /// Whether an acknowledgement became owed since the last call. Text that waits for a delayed
    /// acknowledgement then arrived later than all that waited before.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.has_news)
    }

    /// How many acknowledgements are owed.
    pub(crate) fn count_owed(&self) -> usize {
        self.owed.len() - self.left
    }

    /// Replaces the last acknowledgements that are plain and do not differ in ECE by one. It has the number of
    /// the last and the echoed timestamp of the first (RFC 7323, section 4.3).
    pub(crate) fn stretch(&mut self) {
        let owed = self.owed.get(self.left..).unwrap_or_default();
        let Some(last) = owed.last().copied() else { return };
        let is_alike = |ack: &&AckOwed| (ack.kind, ack.has_mark) == (AckKind::Plain, last.has_mark);
        let alike = owed.iter().rev().take_while(is_alike).count();
        let first = self.owed.len() - alike;
        if let Some(earliest) = self.owed.get(first).filter(|_| alike > 1) {
            let one = AckOwed { echo: earliest.echo, ..last };
            self.owed.truncate(first);
            self.owed.push(one);
        }
    }

    /// Whether a segment with data can carry everything that is owed.
    pub(crate) fn can_ride_along(&self) -> bool {
        let owed = self.owed.get(self.left..).unwrap_or_default();
        owed.len() < 2 && owed.iter().all(|ack| ack.kind == AckKind::Plain)
    }

    /// Forgets what is owed: a segment with SEG.ACK = RCV.NXT is sent, or the connection ends.
    pub(crate) fn ride_along(&mut self) {
        self.owed.clear();
        self.sacks.clear();
        (self.left, self.unacknowledged_bytes) = (0, 0);
        if self.segment != Within::Nothing {
            self.segment = Within::Unanswered;
        }
    }

    /// Takes the next acknowledgements that can be sent together: a single one, or all plain ones up to the
    /// next that is not plain or differs in ECE. Returns the first and its SACK blocks; [`Acks::later`] has
    /// the others. `None` if none is owed.
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

    /// The acknowledgements that [`Acks::take`] took behind the first.
    pub(crate) fn later(&self) -> &[AckOwed] {
        self.owed.get(1..self.left).unwrap_or_default()
    }

    /// Whether the last acknowledgement is not sent, has the number `nxt`, and may get another window.
    pub(crate) fn may_update(&self, nxt: SeqNumber) -> bool {
        let last = self.owed.get(self.left..).and_then(<[AckOwed]>::last);
        last.is_some_and(|last| last.ack == nxt && last.kind != AckKind::Alone)
    }

    /// Changes the window of the last acknowledgement to `window`.
    pub(crate) fn update(&mut self, window: u16) {
        if let Some(last) = self.owed.last_mut() {
            last.window = window;
        }
    }

    /// Owes `ack` with the blocks `sack`.
    pub(crate) fn owe_with(&mut self, ack: AckOwed, sack: SackBlocks) {
        self.owe(ack);
        if let Some(last) = self.owed.last_mut()
            && !sack.is_empty()
            && self.sacks.len() < MOST_OWED
        {
            last.kind = AckKind::AloneWithSack;
            self.sacks.push_back(sack);
        }
    }

    /// Owes `ack` without SACK blocks.
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

    /// How many segments of `bytes` each owe one acknowledgement, if no text waits for one. `None` while
    /// segments are acknowledged at once, or if text waits.
    #[inline]
    pub(crate) fn segments_for_one(&self, bytes: u32, full_segment: u32) -> Option<u32> {
        let is_steady = self.quick == 0 && self.unacknowledged_bytes == 0;
        is_steady.then(|| full_segment.saturating_mul(2).div_ceil(bytes.max(1)).max(1))
    }

    /// How many more acknowledgements can be owed before the last of them is forgotten.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        MOST_OWED - self.owed.len()
    }

    /// Owes all of `acks`, for which there is room, without SACK blocks.
    #[inline(always)]
    pub(crate) fn owe_each(&mut self, acks: impl Iterator<Item = AckOwed>) {
        (self.unacknowledged_bytes, self.has_news) = (0, true);
        self.owed.extend(acks);
    }

    /// Makes room if the owner has not sent for long: the next acknowledgement covers those that go.
    fn forget_last(&mut self) {
        if self.owed.pop().is_some_and(|last| last.kind == AckKind::AloneWithSack) {
            self.sacks.pop_back();
        }
    }

    /// Frees the memory if nothing is owed. It is allocated again when it is used.
    pub(crate) fn free_unused(&mut self) {
        if self.owed.len() == self.left {
            (self.owed, self.left) = (Vec::new(), 0);
        }
        if self.sacks.is_empty() {
            self.sacks = VecDeque::new();
        }
    }
}

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

    /// RFC 7323, section 4.3: an acknowledgement of several segments echoes the first.
    #[test]
    fn a_stretch_ack_is_the_last_one_with_the_echo_of_the_first() {
        let mut acks = Acks::new(0);
        acks.owe(plain(1));
        acks.take();
        (2..9).for_each(|n| acks.owe(plain(n)));
        acks.stretch();
        (9..12).for_each(|n| acks.owe(plain(n)));
        acks.stretch();
        let said: Vec<_> = taken(&mut acks).iter().map(|ack| (ack.ack.0, ack.echo)).collect();
        assert_eq!(said, [(11, 2)], "one until it is sent, and not the one that was");
    }

    /// A duplicate counts at the peer, and a mark must not be hidden (RFC 3168, section 6.1.3).
    #[test]
    fn a_stretch_ack_replaces_neither_duplicates_nor_marks() {
        let mut acks = Acks::new(0);
        let marked = |number| AckOwed { has_mark: true, ..plain(number) };
        for ack in [plain(1), alone(1), plain(2), plain(3), marked(4), marked(5)] {
            acks.owe(ack);
            acks.stretch();
        }
        let said = core::iter::from_fn(|| acks.take()).map(|(ack, _)| (ack.ack.0, ack.has_mark));
        let expected = [(1, false), (1, false), (3, false), (5, true)];
        assert_eq!(said.collect::<Vec<_>>(), expected);
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
