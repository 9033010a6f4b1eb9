//! What was sent, range by range, and what has become of it.
//!
//! Separate because everything that recovers from loss asks it: which bytes are in flight, which
//! the peer holds, which count as lost, when each was last sent. A large send is one range until
//! an acknowledgement cuts it. The number of ranges is limited, and their memory is allocated when it is used; where a
//! cut finds no room, the SACK that asked for it is forgotten, which costs a needless
//! retransmission and nothing else.

use alloc::collections::VecDeque;

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use crate::options::SackBlock;
use crate::sequence::{distance, earlier, later};

/// A range of sequence numbers that was sent as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) start: SeqNumber,
    pub(crate) end: SeqNumber,
    /// When it was last sent.
    pub(crate) sent_at: Instant,
    pub(crate) was_retransmitted: bool,
    pub(crate) fate: Fate,
}

/// What is known of a range that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// On its way, as far as anybody knows.
    InFlight,
    /// The peer holds it.
    Sacked,
    /// It is to be sent again.
    Lost,
}

impl Sent {
    pub(crate) fn bytes(&self) -> u32 {
        distance(self.start, self.end)
    }
}

/// All ranges from SND.UNA to SND.NXT, in order.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    ranges: VecDeque<Sent>,
    limit: usize,
    in_flight: u32,
    sacked: u32,
    lost: u32,
}

impl Scoreboard {
    pub(crate) fn with_limit(ranges: usize) -> Self {
        Self { ranges: VecDeque::new(), limit: ranges, in_flight: 0, sacked: 0, lost: 0 }
    }

    /// Allows `ranges`; those that are out stay.
    pub(crate) fn set_limit(&mut self, ranges: usize) {
        self.limit = ranges;
        self.ranges.shrink_to(ranges);
    }

    /// Frees the memory if nothing is out.
    pub(crate) fn free_unused(&mut self) {
        if self.ranges.is_empty() {
            self.ranges = VecDeque::new();
        }
    }

    /// Bytes that may still be in the network: the pipe.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Bytes that the peer holds out of order.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Bytes that wait to be sent again.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// All ranges that are out, in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &Sent> {
        self.ranges.iter()
    }

    /// The first range that is out.
    #[inline]
    pub(crate) fn first_range(&self) -> Option<&Sent> {
        self.ranges.front()
    }

    /// Whether another send can be remembered, with places left for cuts.
    pub(crate) fn has_room(&self) -> bool {
        self.ranges.len() < self.limit / 2
    }

    /// The first sequence number that is not acknowledged, if any is out.
    pub(crate) fn first(&self) -> Option<SeqNumber> {
        self.ranges.front().map(|first| first.start)
    }

    /// `start` to `end` was sent for the first time.
    pub(crate) fn sent(&mut self, start: SeqNumber, end: SeqNumber, now: Instant) {
        let fate = Fate::InFlight;
        let range = Sent { start, end, sent_at: now, was_retransmitted: false, fate };
        self.in_flight += range.bytes();
        match self.ranges.back_mut() {
            Some(last) if continues(last, &range) => last.end = end,
            _ => self.ranges.push_back(range),
        }
    }

    /// Everything before `ack` arrived; shows each range that goes.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: SeqNumber, mut gone: impl FnMut(&Sent)) {
        while let Some(first) = self.ranges.front_mut() {
            if first.start.is_at_or_after(ack) {
                return;
            }
            let part = Sent { end: earlier(first.end, ack), ..*first };
            let is_all = part.end == first.end;
            first.start = part.end;
            if is_all {
                self.ranges.pop_front();
            }
            gone(&part);
            *self.counter(part.fate) -= part.bytes();
        }
    }

    /// As [`Scoreboard::acknowledge`], while everything that is out is in flight and was sent once as far as `ack`.
    #[inline]
    pub(crate) fn acknowledge_in_flight(&mut self, ack: SeqNumber, mut gone: impl FnMut(&Sent)) {
        while let Some(first) = self.ranges.front_mut().filter(|it| it.start.is_before(ack)) {
            let end = earlier(first.end, ack);
            let part = Sent { end, was_retransmitted: false, fate: Fate::InFlight, ..*first };
            let is_all = end == first.end;
            first.start = end;
            if is_all {
                self.ranges.pop_front();
            }
            self.in_flight -= part.bytes();
            gone(&part);
        }
    }

    /// Whether all before `ack`, and there is some, was sent once.
    #[inline]
    pub(crate) fn was_sent_once(&self, ack: SeqNumber) -> bool {
        let Some(first) = self.ranges.front() else { return false };
        let begins_here = first.start.is_before(ack) && !first.was_retransmitted;
        begins_here && (first.end.is_at_or_after(ack) || self.were_sent_once(ack))
    }

    /// Forgets all that is out, if all was sent once. Returns whether it was. Nothing of it is sacked or lost.
    pub(crate) fn forget_sent_once(&mut self) -> bool {
        if self.ranges.iter().any(|range| range.was_retransmitted) {
            return false;
        }
        self.ranges.clear();
        self.in_flight = 0;
        true
    }

    fn were_sent_once(&self, ack: SeqNumber) -> bool {
        let mut before = self.ranges.iter().take_while(|range| range.start.is_before(ack));
        before.all(|range| !range.was_retransmitted)
    }

    /// The peer holds `block`; shows each range for which that is news.
    pub(crate) fn sack(&mut self, block: SackBlock, mut news: impl FnMut(&Sent)) {
        self.cut(block.start);
        self.cut(block.end);
        let first = self.ranges.partition_point(|range| range.start.is_before(block.start));
        for index in first..self.ranges.len() {
            let range = self.ranges[index];
            if block.end.is_before(range.end) {
                break;
            }
            if range.fate != Fate::Sacked {
                news(&range);
                self.set(index, Fate::Sacked);
            }
        }
    }

    /// Marks as lost what `is_lost` says of the ranges in flight; says how many bytes.
    pub(crate) fn lose(&mut self, mut is_lost: impl FnMut(&Sent) -> bool) -> u32 {
        let before = self.lost;
        for index in 0..self.ranges.len() {
            let range = self.ranges[index];
            if range.fate == Fate::InFlight && is_lost(&range) {
                self.set(index, Fate::Lost);
            }
        }
        self.lost - before
    }

    /// Marks the first `bytes` as lost, if they are in flight.
    pub(crate) fn lose_first(&mut self, bytes: u32) {
        let Some(start) = self.ranges.front().map(|first| first.start) else { return };
        self.cut(start + bytes);
        if self.ranges.front().is_some_and(|first| first.fate == Fate::InFlight) {
            self.set(0, Fate::Lost);
        }
    }

    /// Marks everything as lost that the peer does not hold. When it seems to have thrown away what
    /// it held (RFC 2018, section 8), that too.
    pub(crate) fn lose_all(&mut self) {
        let has_reneged = self.ranges.front().is_some_and(|first| first.fate == Fate::Sacked);
        for index in 0..self.ranges.len() {
            if has_reneged || self.ranges[index].fate != Fate::Sacked {
                self.set(index, Fate::Lost);
            }
        }
    }

    /// What was counted as lost is in flight after all.
    pub(crate) fn find_all(&mut self) {
        for index in 0..self.ranges.len() {
            if self.ranges[index].fate == Fate::Lost {
                self.set(index, Fate::InFlight);
            }
        }
    }

    /// The first bytes to be sent again, at most `bytes` of them.
    pub(crate) fn first_lost(&self, bytes: u32) -> Option<(SeqNumber, SeqNumber)> {
        let first = self.ranges.iter().find(|range| range.fate == Fate::Lost)?;
        Some((first.start, earlier(first.end, first.start + bytes)))
    }

    /// The last `bytes` that the peer is not known to hold.
    pub(crate) fn last_unsacked(&self, bytes: u32) -> Option<(SeqNumber, SeqNumber)> {
        let last = self.ranges.iter().rev().find(|range| range.fate != Fate::Sacked)?;
        let start = SeqNumber(last.end.0.wrapping_sub(bytes));
        Some((later(last.start, start), last.end))
    }

    /// `start` to `end`, inside one range, was sent again.
    pub(crate) fn sent_again(&mut self, start: SeqNumber, end: SeqNumber, now: Instant) {
        self.cut(start);
        self.cut(end);
        let index = self.ranges.partition_point(|range| start.is_at_or_after(range.end));
        if index == self.ranges.len() {
            return;
        }
        if self.ranges[index].fate == Fate::Lost {
            self.set(index, Fate::InFlight);
        }
        let range = &mut self.ranges[index];
        (range.sent_at, range.was_retransmitted) = (now, true);
    }

    fn set(&mut self, index: usize, fate: Fate) {
        let range = self.ranges[index];
        *self.counter(range.fate) -= range.bytes();
        *self.counter(fate) += range.bytes();
        self.ranges[index].fate = fate;
    }

    /// How many bytes have this fate.
    #[inline]
    fn counter(&mut self, fate: Fate) -> &mut u32 {
        match fate {
            Fate::InFlight => &mut self.in_flight,
            Fate::Sacked => &mut self.sacked,
            Fate::Lost => &mut self.lost,
        }
    }

    /// Makes `at` the boundary of two ranges, when it lies inside one and there is room.
    fn cut(&mut self, at: SeqNumber) {
        let index = self.ranges.partition_point(|range| at.is_at_or_after(range.end));
        let Some(range) = self.ranges.get(index).copied() else { return };
        if range.start.is_at_or_after(at) || self.ranges.len() >= self.limit {
            return;
        }
        self.ranges[index].end = at;
        self.ranges.insert(index + 1, Sent { start: at, ..range });
    }
}

/// Whether `next` can be one range with `last`.
fn continues(last: &Sent, next: &Sent) -> bool {
    last.end == next.start
        && last.sent_at == next.sent_at
        && last.fate == next.fate
        && last.was_retransmitted == next.was_retransmitted
}

#[cfg(test)]
mod tests;
