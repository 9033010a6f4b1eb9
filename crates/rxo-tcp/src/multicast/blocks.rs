//! Parity repair, at the sender: the blocks that not all receivers have acknowledged, and the parity packets
//! that the receivers need.
//!
//! Separate from `repair.rs`, which repeats segments: a parity packet repairs different lost segments at
//! different receivers. Once a whole block has been sent, the group sends as many parity packets as the
//! receiver with the most losses in the block lacks segments. If a receiver requests more segments later, only
//! the additional packets are sent, because the earlier packets remain useful. A receiver that requests a
//! segment again has lost some of the packets. It gets a few more packets, and after [`MOST_ROUNDS`] rounds the
//! segments themselves.

use alloc::collections::{BTreeMap, VecDeque};
use core::ops::Range;

use rxo_frame::{Duration, Instant};

use super::repair::RepairRequest;
use super::{Group, MemberId, Parity, ParityBlock, Repair, Repairs};

/// The blocks of the stream that not all receivers have acknowledged, in order. Positions are offsets in the stream.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: VecDeque<Block>,
    /// `true` if a block may need parity packets that have not been sent.
    is_wanted: bool,
}

#[derive(Debug)]
struct Block {
    start: u64,
    end: u64,
    segment_bytes: u32,
    /// `true` if the block does not grow any more.
    is_closed: bool,
    /// The time at which the first segment of the block was sent.
    opened_at: Instant,
    /// The number of parity packets of the block that receivers need (`needed`), and the number that was sent
    /// (`sent`).
    needed: u8,
    sent: u8,
    /// The time at which parity packets of the block were last sent.
    sent_at: Instant,
    losses: BTreeMap<MemberId, ReceiverLosses>,
}

/// The losses of one receiver in a block.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiverLosses {
    /// One bit for each segment of the block, set if the receiver has requested the segment.
    segments: u64,
    /// The number of rounds in which the receiver has lost parity packets that it needed.
    rounds: u32,
}

/// The parity packets of a block that are to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) segment_bytes: u32,
    pub(super) packets: Range<u8>,
    /// The number of segments that `leader` lacks in the block, if no packets were sent for the leader
    /// before.
    leaders: u32,
}

impl Blocks {
    /// Adds the data from `start` up to `end`, which is being sent in segments of `segment_bytes` bytes.
    pub(super) fn sent(&mut self, (start, end): (u64, u64), segment_bytes: u32, now: Instant) {
        let most = u64::from(segment_bytes) * ParityBlock::MOST_SEGMENTS as u64;
        let mut at = start;
        while at < end {
            let follows = |last: &Block| !last.is_closed && last.segment_bytes == segment_bytes;
            if !self.blocks.back().is_some_and(follows) {
                self.close_last();
                self.blocks.push_back(Block::new(at, segment_bytes, now));
            }
            let Some(last) = self.blocks.back_mut() else { return };
            last.end = end.min(last.start + most);
            last.is_closed = last.end == last.start + most;
            at = last.end;
        }
    }

    fn close_last(&mut self) {
        if let Some(last) = self.blocks.back_mut() {
            last.is_closed = true;
        }
    }

    /// Drops the blocks before `una`, which all receivers have acknowledged. Returns the position of the first byte
    /// that repairs may need: a parity packet is computed from the whole block, also from the part before `una`.
    pub(super) fn advance(&mut self, una: u64) -> u64 {
        while self.blocks.front().is_some_and(|block| block.end <= una) {
            self.blocks.pop_front();
        }
        self.blocks.front().map_or(una, |block| block.start.min(una))
    }

    /// Drops the losses of a receiver that is no longer a member.
    pub(super) fn forget_member(&mut self, id: MemberId) {
        for block in &mut self.blocks {
            block.losses.remove(&id);
        }
    }

    /// Processes a receiver's request for a segment. Returns `false` if the segment itself must be sent.
    /// `is_over` means that the FIN has been sent. A receiver that repeats a request after the FIN may have
    /// left the group, so it gets the segment itself.
    fn ask(&mut self, wanted: &RepairRequest, is_over: bool, now: Instant) -> bool {
        let next = self.blocks.partition_point(|block| block.end <= wanted.start);
        let Some(block) = self.blocks.get_mut(next) else { return false };
        let is_served = block.ask(wanted, is_over, now);
        self.is_wanted |= block.needed > block.sent;
        is_served
    }

    /// Returns the time at which the next parity packets are to be sent; `None` if none are needed.
    pub(super) fn next_at(&self, is_over: bool) -> Option<Instant> {
        if !self.is_wanted {
            return None;
        }
        self.blocks.iter().filter_map(|block| block.due_at(is_over)).min()
    }

    /// Returns the parity packets of the first block with packets to send at `now`, and counts these packets as
    /// sent. `None` if no block has packets to send.
    fn take_due(&mut self, is_over: bool, leader: Option<MemberId>, now: Instant) -> Option<Due> {
        if !self.is_wanted {
            return None;
        }
        let is_due = |block: &&mut Block| block.due_at(is_over).is_some_and(|at| at <= now);
        let Some(block) = self.blocks.iter_mut().find(is_due) else {
            self.is_wanted = self.blocks.iter().any(|block| block.needed > block.sent);
            return None;
        };
        let losses = leader.and_then(|id| block.losses.get(&id)).filter(|_| block.sent == 0);
        let due = Due {
            start: block.start,
            end: block.end,
            segment_bytes: block.segment_bytes,
            packets: block.sent..block.needed,
            leaders: losses.map_or(0, |losses| losses.segments.count_ones()),
        };
        (block.sent, block.sent_at, block.is_closed) = (block.needed, now, true);
        Some(due)
    }
}

impl Block {
    fn new(start: u64, segment_bytes: u32, now: Instant) -> Self {
        Self {
            start,
            end: start,
            segment_bytes,
            is_closed: false,
            opened_at: now,
            needed: 0,
            sent: 0,
            sent_at: Instant::ZERO,
            losses: BTreeMap::new(),
        }
    }

    /// Processes a receiver's request for a segment of this block, like [`Blocks::ask`].
    fn ask(&mut self, wanted: &RepairRequest, is_over: bool, now: Instant) -> bool {
        let (bytes, size) = (wanted.end - wanted.start, u64::from(self.segment_bytes));
        let offset = wanted.start.saturating_sub(self.start);
        if bytes != size || !offset.is_multiple_of(size) || wanted.end > self.end {
            return false;
        }
        let bit = 1_u64 << (offset / size);
        let losses = self.losses.entry(wanted.id).or_default();
        let is_new = losses.segments & bit == 0;
        losses.segments |= bit;
        let lost = losses.segments.count_ones();
        if is_new {
            return self.need(lost);
        }
        let is_on_its_way =
            self.needed > self.sent || now < self.sent_at.plus_nanos(wanted.round_trip_ns / 4 * 5);
        if is_on_its_way {
            return true;
        }
        if is_over || losses.rounds == MOST_ROUNDS {
            return false;
        }
        // The number of packets that the receiver lost is not known: first few more are sent, then twice as
        // many.
        let more = (lost >> (MOST_ROUNDS - losses.rounds)).max(1);
        losses.rounds += 1;
        self.need(u32::from(self.sent) + more)
    }

    /// Raises the number of needed parity packets to `packets`. Returns `false` if the block cannot have so
    /// many.
    fn need(&mut self, packets: u32) -> bool {
        let is_possible = packets <= ParityBlock::MOST_PARITY as u32;
        if is_possible {
            self.needed = self.needed.max(packets as u8);
        }
        is_possible
    }

    fn due_at(&self, is_over: bool) -> Option<Instant> {
        let is_filled = self.is_closed || is_over;
        let at = if is_filled { self.opened_at } else { self.opened_at + LONGEST_OPEN };
        (self.needed > self.sent).then_some(at)
    }
}

impl Group {
    /// Removes from `wanted` the requests for segments that parity packets will repair.
    pub(super) fn ask_for_parity(
        &mut self,
        wanted: &mut alloc::vec::Vec<RepairRequest>,
        now: Instant,
    ) {
        // For a single receiver, a parity packet repairs no more than a segment does.
        if self.config.repairs != Repairs::Parity || self.receivers() < 2 {
            return;
        }
        let is_over = self.has_sent_all();
        // After a timeout a receiver may lack whole blocks, and its connection requests a few segments at a time.
        wanted.retain(|it| it.is_after_timeout || !self.blocks.ask(it, is_over, now));
    }

    /// Queues the parity packets that are due.
    pub(super) fn queue_parity(&mut self, now: Instant) {
        let is_over = self.has_sent_all();
        let leader = self.controller.as_ref().and_then(|it| it.leader());
        while let Some(due) = self.blocks.take_due(is_over, leader, now) {
            let Due { start, end, segment_bytes, packets, leaders } = due;
            let counted = (packets.len() as u32).saturating_sub(leaders);
            if let Some(controller) = &mut self.controller {
                controller.count_repairs(counted * segment_bytes, now);
            }
            for index in packets {
                self.repairs.push_back(Repair::parity_of((start, end), segment_bytes, index));
            }
        }
    }

    /// Returns the parity packet for `repair`, without its symbol; `None` if `repair` is a segment. The owner
    /// computes the symbol from the block's data ([`Group::sent_text`]), which is empty if all receivers have
    /// acknowledged the whole block in the meantime.
    #[must_use]
    pub fn parity(&self, repair: &Repair, now: Instant) -> Option<Parity<'static>> {
        let (segment_bytes, index) = repair.parity()?;
        let (start, end) = repair.range();
        let block = ParityBlock {
            seq: self.seq(start),
            // A block has at most 64 segments.
            bytes: (end - start) as u32,
            segment_bytes: u16::try_from(segment_bytes).ok()?,
        };
        Some(Parity { block, index, time_value: self.time_value(now), symbol: &[] })
    }
}

/// The number of times that a receiver may lose parity packets of a block before it gets the segments
/// themselves.
const MOST_ROUNDS: u32 = 3;
/// The longest time that a block with lost segments stays open for more segments: on a slow link, losses must
/// be repaired before retransmission timers expire.
const LONGEST_OPEN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
