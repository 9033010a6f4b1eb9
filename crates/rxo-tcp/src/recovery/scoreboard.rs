//! The scoreboard: the ranges of sent data and the state of each.
//!
//! Separate because all parts of loss recovery use the scoreboard. The scoreboard records which bytes are in
//! flight, held by the peer, or lost, and the time at which each byte was last sent. A GSO frame is one range
//! until an ACK splits the range. The number of ranges is limited, and memory is allocated when needed. If
//! there is no free slot for a split, the SACK block that requires the split is ignored, which only costs a
//! needless retransmission.

use alloc::collections::VecDeque;

use crate::sequence::{distance, earlier, later};
use rxo_frame::Instant;
use rxo_wire::SeqNumber;
use rxo_wire::tcp::SackBlock;

/// A range of sequence numbers that was sent at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) start: SeqNumber,
    pub(crate) end: SeqNumber,
    /// The time at which the range was last sent.
    pub(crate) sent_at: Instant,
    pub(crate) was_retransmitted: bool,
    pub(crate) state: RangeState,
}

/// The state of a range that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeState {
    /// The range is in the network, as far as known.
    InFlight,
    /// The peer holds the range out of order.
    Sacked,
    /// The range is lost, and waits for retransmission.
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

    /// Changes the maximum number of ranges to `ranges`. Existing ranges are kept, even if there are more.
    pub(crate) fn set_limit(&mut self, ranges: usize) {
        self.limit = ranges;
        self.ranges.shrink_to(ranges);
    }

    /// Frees the memory if nothing is outstanding.
    pub(crate) fn free_unused(&mut self) {
        if self.ranges.is_empty() {
            self.ranges = VecDeque::new();
        }
    }

    /// Returns the number of bytes that may still be in the network (the pipe).
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the number of bytes that the peer holds out of order.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the number of bytes that wait for retransmission.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Returns all outstanding ranges, in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &Sent> {
        self.ranges.iter()
    }

    /// Returns the first outstanding range; `None` if nothing is outstanding.
    #[inline]
    pub(crate) fn first_range(&self) -> Option<&Sent> {
        self.ranges.front()
    }

    /// Returns `true` if another send can be recorded, with slots left for splits.
    pub(crate) fn has_room(&self) -> bool {
        self.ranges.len() < self.limit / 2
    }

    /// Returns the first sequence number that is not acknowledged; `None` if nothing is outstanding.
    pub(crate) fn first(&self) -> Option<SeqNumber> {
        self.ranges.front().map(|first| first.start)
    }

    /// Records that the range `start` to `end` was sent for the first time.
    pub(crate) fn sent(&mut self, start: SeqNumber, end: SeqNumber, now: Instant) {
        let state = RangeState::InFlight;
        let range = Sent { start, end, sent_at: now, was_retransmitted: false, state };
        self.in_flight += range.bytes();
        match self.ranges.back_mut() {
            Some(last) if continues(last, &range) => last.end = end,
            _ => self.ranges.push_back(range),
        }
    }

    /// Removes everything before `ack`, which has arrived. Calls `gone` for each removed range.
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
            *self.counter(part.state) -= part.bytes();
        }
    }

    /// Removes everything before `ack`, as [`Scoreboard::acknowledge`] does. All removed data must be in flight
    /// and must have been sent once.
    #[inline]
    pub(crate) fn acknowledge_in_flight(&mut self, ack: SeqNumber, mut gone: impl FnMut(&Sent)) {
        while let Some(first) = self.ranges.front_mut().filter(|it| it.start.is_before(ack)) {
            let end = earlier(first.end, ack);
            let part =
                Sent { end, was_retransmitted: false, state: RangeState::InFlight, ..*first };
            let is_all = end == first.end;
            first.start = end;
            if is_all {
                self.ranges.pop_front();
            }
            self.in_flight -= part.bytes();
            gone(&part);
        }
    }

    /// Returns `true` if there is sent data before `ack` and all of it was sent once.
    #[inline]
    pub(crate) fn was_sent_once(&self, ack: SeqNumber) -> bool {
        let Some(first) = self.ranges.front() else { return false };
        let begins_here = first.start.is_before(ack) && !first.was_retransmitted;
        begins_here && (first.end.is_at_or_after(ack) || self.were_sent_once(ack))
    }

    /// Drops all ranges if all were sent once. Returns `false`, and changes nothing, otherwise. No range may
    /// be sacked or lost.
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

    /// Records that the peer holds `block`. Calls `on_new` for each range that was not yet known to be held.
    pub(crate) fn sack(&mut self, block: SackBlock, mut on_new: impl FnMut(&Sent)) {
        self.cut(block.start);
        self.cut(block.end);
        let first = self.ranges.partition_point(|range| range.start.is_before(block.start));
        for index in first..self.ranges.len() {
            let range = self.ranges[index];
            if block.end.is_before(range.end) {
                break;
            }
            if range.state != RangeState::Sacked {
                on_new(&range);
                self.set(index, RangeState::Sacked);
            }
        }
    }

    /// Marks the ranges in flight for which `is_lost` is true as lost. Returns the number of bytes that were
    /// marked.
    pub(crate) fn mark_lost(&mut self, mut is_lost: impl FnMut(&Sent) -> bool) -> u32 {
        let before = self.lost;
        for index in 0..self.ranges.len() {
            let range = self.ranges[index];
            if range.state == RangeState::InFlight && is_lost(&range) {
                self.set(index, RangeState::Lost);
            }
        }
        self.lost - before
    }

    /// Marks the first `bytes` bytes as lost, if they are in flight.
    pub(crate) fn mark_first_lost(&mut self, bytes: u32) {
        let Some(start) = self.ranges.front().map(|first| first.start) else { return };
        self.cut(start + bytes);
        if self.ranges.front().is_some_and(|first| first.state == RangeState::InFlight) {
            self.set(0, RangeState::Lost);
        }
    }

    /// Marks everything that the peer does not hold as lost. If the peer seems to have discarded data that it
    /// held (RFC 2018, section 8), marks that data as well.
    pub(crate) fn mark_all_lost(&mut self) {
        let has_reneged =
            self.ranges.front().is_some_and(|first| first.state == RangeState::Sacked);
        for index in 0..self.ranges.len() {
            if has_reneged || self.ranges[index].state != RangeState::Sacked {
                self.set(index, RangeState::Lost);
            }
        }
    }

    /// Marks all lost data as in flight again, because the data proved not to be lost.
    pub(crate) fn find_all(&mut self) {
        for index in 0..self.ranges.len() {
            if self.ranges[index].state == RangeState::Lost {
                self.set(index, RangeState::InFlight);
            }
        }
    }

    /// Returns the first lost range, cut to `bytes` bytes; `None` if nothing is lost.
    pub(crate) fn first_lost(&self, bytes: u32) -> Option<(SeqNumber, SeqNumber)> {
        let first = self.ranges.iter().find(|range| range.state == RangeState::Lost)?;
        Some((first.start, earlier(first.end, first.start + bytes)))
    }

    /// Returns the last range that the peer is not known to hold, cut to its last `bytes` bytes; `None` if
    /// there is none.
    pub(crate) fn last_unsacked(&self, bytes: u32) -> Option<(SeqNumber, SeqNumber)> {
        let last = self.ranges.iter().rev().find(|range| range.state != RangeState::Sacked)?;
        let start = SeqNumber(last.end.0.wrapping_sub(bytes));
        Some((later(last.start, start), last.end))
    }

    /// Records that `start` to `end`, a part of one range, was retransmitted.
    pub(crate) fn sent_again(&mut self, start: SeqNumber, end: SeqNumber, now: Instant) {
        self.cut(start);
        self.cut(end);
        let index = self.ranges.partition_point(|range| start.is_at_or_after(range.end));
        if index == self.ranges.len() {
            return;
        }
        if self.ranges[index].state == RangeState::Lost {
            self.set(index, RangeState::InFlight);
        }
        let range = &mut self.ranges[index];
        (range.sent_at, range.was_retransmitted) = (now, true);
    }

    fn set(&mut self, index: usize, state: RangeState) {
        let range = self.ranges[index];
        *self.counter(range.state) -= range.bytes();
        *self.counter(state) += range.bytes();
        self.ranges[index].state = state;
    }

    /// Returns the counter of bytes whose state is `state`.
    #[inline]
    fn counter(&mut self, state: RangeState) -> &mut u32 {
        match state {
            RangeState::InFlight => &mut self.in_flight,
            RangeState::Sacked => &mut self.sacked,
            RangeState::Lost => &mut self.lost,
        }
    }

    /// Splits the range that contains the sequence number `at` into two, if there is such a range and a slot
    /// is free.
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

/// Returns `true` if `next` can be merged into `last`: `next` begins at the end of `last`, and both have the
/// same send time and state. Either both were retransmitted, or neither was.
fn continues(last: &Sent, next: &Sent) -> bool {
    last.end == next.start
        && last.sent_at == next.sent_at
        && last.state == next.state
        && last.was_retransmitted == next.was_retransmitted
}

#[cfg(test)]
mod tests;
