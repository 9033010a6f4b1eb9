//! Which acknowledgements are owed: how many, what each says, and when.
//!
//! Separate because aggregation must not change it: text is counted segment by segment, so the segments of
//! an aggregate cause the acknowledgements that they would have caused alone (Menon and Zwaenepoel 2008,
//! section 3.4). The content of each is fixed when it becomes owed, as if it were sent then. Those that
//! differ in numbers only are sent as one template (section 4).

use alloc::vec::Vec;
use core::num::NonZeroU16;

use rxo_wire::SeqNumber;

use super::repeats::Repeats;
use crate::AckPolicy;
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
    /// As a segment of its own, and no later one replaces it: it says that a gap is filled. A peer that repairs a loss
    /// sends no tail loss probe (RFC 8985, section 7.2), so that it waits for its retransmission timeout if all that a
    /// turn says is one acknowledgement, and that is lost (RFC 2525, section 2.13).
    Filled,
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
    sacks: Vec<SackBlocks>,
    /// How many of the first of `owed` were sent. They are kept until the next call, for the caller to read.
    left: u32,
    /// Bytes of text that no owed acknowledgement covers.
    unacknowledged_bytes: u32,
    /// While so many SACK options wait, a duplicate is left out if the next one has all of its blocks.
    brief_from: u8,
    repeats: Repeats,
    segment: Within,
    /// Which of the segments in order owe one, if not every second.
    spread: Option<Spread>,
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
    /// No acknowledgement is owed. The first `quick` segments are acknowledged at once, then as `policy` says.
    pub(crate) fn new(quick: u16, policy: AckPolicy) -> Self {
        Self {
            owed: Vec::new(),
            sacks: Vec::new(),
            left: 0,
            unacknowledged_bytes: 0,
            brief_from: if policy == AckPolicy::OneForATurn { 0 } else { MOST_SACKS as u8 / 2 },
            repeats: Repeats::default(),
            segment: Within::Nothing,
            spread: Spread::of(policy),
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
        let is_due = match &mut self.spread {
            None => self.unacknowledged_bytes >= full_segment.saturating_mul(2),
            Some(spread) => spread.count(bytes, full_segment),
        };
        let is_owed = is_due || self.quick > 0;
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
        if self.spread.is_some() {
            return (1, self.count(bytes, full_segment));
        }
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

    /// Whether a whole segment waits for a delayed acknowledgement.
    pub(crate) fn is_delaying_a_whole(&self, full_segment: u32) -> bool {
        self.unacknowledged_bytes >= full_segment && full_segment > 0
    }

    /// Whether an acknowledgement became owed since the last call. Text that waits for a delayed
    /// acknowledgement then arrived later than all that waited before.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.has_news)
    }

    /// Those that were not sent.
    #[inline]
    fn waiting(&self) -> &[AckOwed] {
        self.owed.get(self.left as usize..).unwrap_or_default()
    }

    /// How many acknowledgements are owed.
    pub(crate) fn count_owed(&self) -> usize {
        self.waiting().len()
    }

    /// Replaces the last acknowledgements that are plain and do not differ in ECE by one; behind them one may say that a gap
    /// is filled. It has the number of the last and the echoed timestamp of the first (RFC 7323, section 4.3).
    pub(crate) fn stretch(&mut self) {
        let filled = match self.waiting() {
            [.., last] if last.kind == AckKind::Filled => self.owed.pop(),
            _ => None,
        };
        self.stretch_plain();
        self.owed.extend(filled);
    }

    #[inline]
    fn stretch_plain(&mut self) {
        let owed = self.waiting();
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

    /// Replaces everything that is owed by the last, with its SACK blocks and the echoed timestamp of the first.
    pub(crate) fn keep_last(&mut self) {
        let first = self.waiting().first().copied();
        let (Some(first), true) = (first, self.count_owed() > 1) else { return };
        let Some(last) = self.owed.pop() else { return };
        // Those that were sent have taken their blocks.
        let sack = self.sacks.pop().filter(|_| last.kind == AckKind::AloneWithSack);
        self.sacks.clear();
        self.sacks.extend(sack);
        self.owed.truncate(self.left as usize);
        self.owed.push(AckOwed {
            echo: first.echo,
            has_mark: first.has_mark || last.has_mark,
            ..last
        });
    }

    /// Whether a segment with data can carry everything that is owed.
    pub(crate) fn can_ride_along(&self) -> bool {
        let owed = self.waiting();
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
        self.owed.drain(..self.left as usize);
        self.left = 0;
        // What a flood took is given back, so that it need not be counted for each connection.
        if self.owed.len() < MOST_KEPT && self.owed.capacity() > MOST_KEPT {
            self.owed.shrink_to(MOST_KEPT);
        }
        let first = self.owed.first().copied()?;
        let is_alike =
            |ack: &&AckOwed| (ack.kind, ack.has_mark) == (AckKind::Plain, first.has_mark);
        self.left = self.owed.iter().take_while(is_alike).count().max(1) as u32;
        let has_sack = first.kind == AckKind::AloneWithSack && !self.sacks.is_empty();
        let sack = if has_sack { self.sacks.remove(0) } else { SackBlocks::default() };
        Some((first, sack))
    }

    /// The acknowledgements that [`Acks::take`] took behind the first.
    pub(crate) fn later(&self) -> &[AckOwed] {
        self.owed.get(1..self.left as usize).unwrap_or_default()
    }

    /// Whether the last acknowledgement is not sent, has the number `nxt`, and may get another window.
    pub(crate) fn may_update(&self, nxt: SeqNumber) -> bool {
        let last = self.waiting().last();
        last.is_some_and(|last| last.ack == nxt && last.kind != AckKind::Alone)
    }

    /// Changes the window of the last acknowledgement to `window`.
    pub(crate) fn update(&mut self, window: u16) {
        if let Some(last) = self.owed.last_mut() {
            last.window = window;
        }
    }

    /// Owes `ack` with the blocks `sack`. It replaces the last one if it has all blocks of that and the peer needs no
    /// more duplicates. So no block is left out that no later acknowledgement has: what the peer is not told of it takes as
    /// lost, and sends again. Only if too many options wait nevertheless, the newest replaces the last.
    pub(crate) fn owe_with(&mut self, ack: AckOwed, sack: SackBlocks) {
        if sack.is_empty() {
            return self.owe(ack);
        }
        let is_enough =
            self.repeats.count(ack.ack) && self.sacks.len() >= usize::from(self.brief_from);
        let last = self.waiting().last();
        if let Some(last) = last.filter(|last| last.kind == AckKind::AloneWithSack)
            && (self.sacks.len() == MOST_SACKS || is_enough && self.is_said_by(last, &ack, &sack))
        {
            self.forget_last();
        }
        self.owe(ack);
        if let Some(last) = self.owed.last_mut().filter(|_| self.sacks.len() < MOST_SACKS) {
            last.kind = AckKind::AloneWithSack;
            self.sacks.push(sack);
        }
    }

    /// Owes `ack` without SACK blocks.
    #[inline]
    pub(crate) fn owe(&mut self, ack: AckOwed) {
        (self.unacknowledged_bytes, self.has_news) = (0, true);
        if self.owed.len() == MOST_OWED {
            self.owed.drain(..self.left as usize);
            self.left = 0;
        }
        if self.owed.len() == MOST_OWED {
            self.forget_last();
        }
        self.owed.push(ack);
    }

    /// Whether `ack` with `sack` says what `last` says, which is the last and has the last SACK option.
    fn is_said_by(&self, last: &AckOwed, ack: &AckOwed, sack: &SackBlocks) -> bool {
        let is_alike = (last.ack, last.has_mark) == (ack.ack, ack.has_mark);
        is_alike && self.sacks.last().is_some_and(|own| sack.has_all_of(own, ack.ack))
    }

    /// How many segments of `bytes` each owe one acknowledgement, if no text waits for one. `None` while
    /// segments are acknowledged at once, or if text waits.
    #[inline]
    pub(crate) fn segments_for_one(&self, bytes: u32, full_segment: u32) -> Option<u32> {
        let is_steady = self.quick == 0 && self.unacknowledged_bytes == 0 && self.spread.is_none();
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
            self.sacks.pop();
        }
    }

    /// Frees the memory if nothing is owed. It is allocated again when it is used.
    pub(crate) fn free_unused(&mut self) {
        if self.waiting().is_empty() {
            (self.owed, self.left) = (Vec::new(), 0);
        }
        if self.sacks.is_empty() {
            self.sacks = Vec::new();
        }
    }
}

/// Which segments owe an acknowledgement where many receivers acknowledge the same ones. Counts text in order, whatever
/// else was acknowledged in between, so that offsets stay apart.
#[derive(Clone, Copy, Debug)]
struct Spread {
    segments: NonZeroU16,
    /// Taken when the first segment comes, whose size tells how many bytes it is; then 0.
    offset: u16,
    /// Bytes since the last one was due.
    bytes: u32,
}

impl Spread {
    fn of(policy: AckPolicy) -> Option<Self> {
        match policy {
            AckPolicy::Spread { segments, offset } => {
                let segments = NonZeroU16::new(segments).unwrap_or(NonZeroU16::MIN);
                Some(Self { segments, offset, bytes: 0 })
            }
            AckPolicy::EverySecondSegment | AckPolicy::OneForATurn => None,
        }
    }

    /// Counts a segment of `bytes`. Returns whether one is due.
    fn count(&mut self, bytes: u32, full_segment: u32) -> bool {
        let most = u32::from(self.segments.get()).saturating_mul(full_segment);
        let skipped = u32::from(core::mem::take(&mut self.offset)).saturating_mul(full_segment);
        let after = self.bytes.saturating_add(skipped).saturating_add(bytes);
        self.bytes = if after >= most { after % most.max(1) } else { after };
        after >= most
    }
}

/// The acknowledgements of 2,048 segments: of several full batches, and of what waits while an application uses
/// the connection. What exceeds it is acknowledged, but not by every second segment.
const MOST_OWED: usize = 1_024;
/// SACK options that wait. A peer needs the newest, and some duplicates.
const MOST_SACKS: usize = 64;
/// A full batch owes no more, so memory for so many stays: 3 KiB.
const MOST_KEPT: usize = 256;

#[cfg(test)]
mod tests;
