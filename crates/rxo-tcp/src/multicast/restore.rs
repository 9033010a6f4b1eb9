//! Parity repair, at a receiver: collects parity packets, and finds the blocks that they can restore.
//!
//! Separate from the connection, which processes restored segments as if the group had sent them
//! ([`Connection::restore`]). The owner of the connection implements the erasure code.
//!
//! Contract: no packet causes a panic, and memory is bounded by [`MOST_BLOCKS`] blocks of
//! [`ParityBlock::MOST_PARITY`] packets. A parity packet is accepted only if a segment to the group with the
//! same position and TSval would be accepted, so an attacker must guess both values.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use rxo_frame::Instant;
use rxo_wire::SeqNumber;
use rxo_wire::TcpFlags;
use rxo_wire::tcp::Timestamp;

use super::parity::{Parity, ParityBlock};
use crate::options::SegmentOptions;
use crate::segment::{Ecn, Payload};
use crate::{Arrival, Connection, Segment};

/// The parity packets that a receiver keeps for blocks with missing segments.
#[derive(Debug, Default)]
pub struct ParityCollector {
    incomplete: VecDeque<IncompleteBlock>,
}

/// A block with lost segments, and its parity packets.
#[derive(Debug, PartialEq, Eq)]
pub struct IncompleteBlock {
    /// The block.
    pub block: ParityBlock,
    /// The parity packets of the block: for each its number among all packets of the block, and its symbol.
    pub parity: Vec<(u8, Vec<u8>)>,
    /// The indices of the lost segments of the block, in order.
    pub lost: Vec<usize>,
}

impl ParityCollector {
    /// Returns `true` if no parity packets are kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// Stores a parity packet that has arrived at `now` for `connection`. Copies its symbol. Returns `false`
    /// if the packet has no use: its block is complete or outside the window, or its TSval is not plausible
    /// for the sender.
    pub fn take<B: AsRef<[u8]>>(
        &mut self,
        connection: &Connection<B>,
        parity: &Parity<'_>,
        now: Instant,
    ) -> bool {
        let Parity { block, index, time_value, symbol } = *parity;
        if !connection.may_restore(&block, time_value, now) {
            return false;
        }
        let known = self.incomplete.iter().position(|incomplete| incomplete.block == block);
        let at = known.unwrap_or_else(|| {
            if self.incomplete.len() == MOST_BLOCKS {
                self.incomplete.pop_front();
            }
            self.incomplete.push_back(IncompleteBlock {
                block,
                parity: Vec::new(),
                lost: Vec::new(),
            });
            self.incomplete.len() - 1
        });
        let packets = &mut self.incomplete[at].parity;
        let is_new = packets.iter().all(|(known, _)| *known != index);
        if is_new {
            packets.push((index, symbol.to_vec()));
        }
        is_new
    }

    /// Removes and returns a block that can be restored: at least as many of its parity packets have arrived
    /// as it has lost segments. `None` if no block can be restored. Drops blocks that are complete. Costs
    /// O(number of kept segments).
    pub fn next<B: AsRef<[u8]>>(&mut self, connection: &Connection<B>) -> Option<IncompleteBlock> {
        let mut at = 0;
        while let Some(incomplete) = self.incomplete.get_mut(at) {
            incomplete.lost.clear();
            if connection.may_lack(&incomplete.block) {
                let is_lost = |index: &usize| !connection.has_segment(&incomplete.block, *index);
                incomplete.lost.extend((0..incomplete.block.segments()).filter(is_lost));
            }
            if incomplete.lost.is_empty() {
                self.incomplete.remove(at);
            } else if incomplete.lost.len() <= incomplete.parity.len() {
                return self.incomplete.remove(at);
            } else {
                at += 1;
            }
        }
        None
    }
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Keeps the last `bytes` bytes that the application reads available for [`Connection::copy_segment`].
    /// `bytes` should be the length of a block of the largest segments.
    pub fn keep_read_text(&mut self, bytes: u32) {
        self.rcv.keep_read_text(bytes);
    }

    /// Copies the data of a segment of `block` to `to`, which has the length of that segment. Returns `false`
    /// if the segment has not arrived.
    #[must_use]
    pub fn copy_segment(&self, block: &ParityBlock, index: usize, to: &mut [u8]) -> bool {
        let (seq, bytes) = block.segment(index);
        to.len() == bytes && self.rcv.copy(seq, to)
    }

    /// Processes a restored segment of a block as if the group had sent it.
    pub fn restore(&mut self, now: Instant, seq: SeqNumber, text: B) {
        let bytes = text.as_ref().len();
        let timestamp = Timestamp { value: self.timestamps.recent(), echo: 0 };
        let segment = Segment {
            seq,
            ack: seq,
            flags: TcpFlags::ACK,
            window: 0,
            options: SegmentOptions { timestamp: Some(timestamp), ..SegmentOptions::default() },
            payload: Payload::new(text, 0..bytes),
            ecn: Ecn::NotCapable,
            arrived_at: now,
        };
        self.on_group_arrival(now, Arrival::from(segment));
    }

    /// Returns `true` if a part of `block` may be missing and lies in the window, and `time_value` may be the
    /// TSval of a segment that the peer sends to the group at `now`.
    fn may_restore(&self, block: &ParityBlock, time_value: u32, now: Instant) -> bool {
        self.state.is_synchronized()
            && self.may_lack(block)
            && block.seq.is_before(self.rcv.nxt + self.rcv.wnd())
            && self.timestamps.is_timely(time_value, now)
    }

    /// Returns `true` if `block` ends after RCV.NXT and begins at most its own length before RCV.NXT.
    fn may_lack(&self, block: &ParityBlock) -> bool {
        self.rcv.nxt.is_before(block.end()) && !(self.rcv.nxt + self.rcv.wnd()).is_before(block.seq)
    }

    fn has_segment(&self, block: &ParityBlock, index: usize) -> bool {
        let (seq, bytes) = block.segment(index);
        self.rcv.has(seq, seq + bytes as u32)
    }
}

/// Maximum number of blocks whose parity packets are kept: more blocks than a window of 4 MiB contains.
const MOST_BLOCKS: usize = 64;
