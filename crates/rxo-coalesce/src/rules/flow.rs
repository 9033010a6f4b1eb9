//! The state of a flow, as rules see it.

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use crate::{Candidate, FlushReason, Held};

/// The state of a flow.
#[derive(Debug)]
pub struct Flow<'a, M> {
    /// The held segments, as runs, in the order in which they will be delivered.
    pub runs: &'a [Run],
    /// The last held segment; `None` if nothing is held.
    pub last: Option<Candidate<'a>>,
    /// The sequence number after the delivered text that is furthest in the byte stream; `None` if nothing of
    /// the flow was delivered since it is known.
    pub next_seq: Option<SeqNumber>,
    /// The time of the flow's last delivery; the arrival of its first segment before that.
    pub delivered_at: Instant,
    /// The state that the rules keep for this flow ([`Rules::Memory`](super::Rules::Memory)).
    pub memory: &'a mut M,
}

/// Neighbouring held segments that will be one delivery.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The totals of the run's segments, as for an aggregate that is held.
    pub held: Held,
    /// The earliest arrival among the segments.
    pub oldest: Instant,
    /// The reason for which the run takes no more segments, or not the first segment of the run behind it.
    /// `None` if it is the last run and takes more.
    pub end: Option<FlushReason>,
    /// The place of the run's first segment on the shelf, the memory for held frames.
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Run {
    /// Returns the sequence number of the first byte of the run.
    #[must_use]
    pub fn first_seq(&self) -> SeqNumber {
        SeqNumber(self.held.next_seq.0.wrapping_sub(self.held.payload_bytes))
    }

    /// Returns `true` if no byte is missing between `self` and the run `next` behind it.
    #[must_use]
    pub fn touches(&self, next: &Self) -> bool {
        !self.held.next_seq.is_before(next.first_seq())
    }
}
