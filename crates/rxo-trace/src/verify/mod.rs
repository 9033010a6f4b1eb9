//! Whether two captures say the same, flow by flow.
//!
//! Aggregates and the segments they were made of compare equal: what counts is which bytes of the
//! stream were seen in which order, not how they were cut into packets. For each direction of a
//! connection, on each interface:
//!
//! * **bytes and order**: the same (SEQ, bytes) in the same order, retransmitted and reordered data
//!   included;
//! * **marks**: traffic class with its ECN bits, and every flag but PSH and FIN, the same for every
//!   byte;
//! * **acknowledgements**: pure ACKs one by one; wherever a packet of one and a packet of the other
//!   end at the same byte, the same ACK number, window and options;
//! * **PSH and FIN**: the same between two such places;
//! * **segments inside an aggregate**: where `rxo coalesce` wrote a note, the note must fit its packet,
//!   and each segment that it gives back says the same as the other capture's. Without a note the
//!   header says what the last segment said, and the others are counted as forgotten.
//!
//! Everything else (UDP, fragments, what cannot be read) is compared packet by packet. Not compared
//! are times, link-layer headers, TTL, IP IDs and checksums: those may differ between two captures
//! of one conversation.
//!
//! # Contract
//! Both captures are read once, side by side. What one has and the other has not shown yet waits;
//! [`Limits`] says how much may, and what happens then. Input and output belong to the caller.

mod difference;
mod facts;
mod flow;
mod flows;

#[cfg(test)]
mod tests;

use rxo_device::capture::{LinkType, Record};

pub use self::difference::{Difference, Kind, Verdict};
use self::facts::Seen;
use self::flows::Flows;

/// One of the two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// What bounds the memory of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes that may wait for their counterpart, all flows together. When it is reached,
    /// the packet that waits longest counts as missing in the other capture.
    pub waiting_bytes: usize,
    /// The most flows remembered. When it is reached, those of which nothing waits are forgotten:
    /// nothing is missed, but what is told of them later counts its offsets from there.
    pub flows: usize,
    /// After so many flows that differ the comparison stops.
    pub differences: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { waiting_bytes: 64 << 20, flows: 1 << 20, differences: 100 }
    }
}

/// Two captures being compared.
#[derive(Debug)]
pub struct Comparison {
    flows: Flows,
    packets: [u64; 2],
    ended: [Option<End>; 2],
}

/// How a capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// There is nothing more.
    Whole,
    /// There may be more that could not be read.
    Cut,
}

impl Comparison {
    /// Nothing read yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { flows: Flows::new(limits), packets: [0; 2], ended: [None; 2] }
    }

    /// The capture to read on next: the one that is behind. `None` when both are at their ends, or
    /// enough differences were found.
    #[must_use]
    pub fn next_side(&self) -> Option<Side> {
        if self.flows.has_enough() {
            return None;
        }
        let is_a_ahead = self.flows.waiting_bytes(Side::A) > self.flows.waiting_bytes(Side::B);
        match self.ended {
            [None, None] if is_a_ahead => Some(Side::B),
            [None, _] => Some(Side::A),
            [_, None] => Some(Side::B),
            [Some(_), Some(_)] => None,
        }
    }

    /// Takes the next record of one capture; `link` is its interface's.
    pub fn push(&mut self, side: Side, record: &Record, link: LinkType) {
        let number = &mut self.packets[side.index()];
        *number += 1;
        // What a cut capture does not show cannot be waited for.
        let may_wait = self.ended[side.other().index()] != Some(End::Cut);
        self.flows.push((side, may_wait), *number, Seen::read(record, link));
    }

    /// One capture has nothing more.
    pub fn end(&mut self, side: Side) {
        self.ended[side.index()] = Some(End::Whole);
    }

    /// One capture cannot be read on. What it may have had is not missed; what it had is.
    pub fn cut(&mut self, side: Side) {
        self.ended[side.index()] = Some(End::Cut);
        self.flows.forget_waiting(side.other());
    }

    /// What was found. Whatever still waits is missing in the other capture, if that was read to its
    /// end.
    #[must_use]
    pub fn finish(mut self) -> Verdict {
        for side in [Side::A, Side::B] {
            if self.ended[side.other().index()] != Some(End::Whole) {
                self.flows.forget_waiting(side);
            }
        }
        let [packets_a, packets_b] = self.packets;
        self.flows.finish(packets_a, packets_b)
    }
}
