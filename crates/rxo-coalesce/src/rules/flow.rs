//! The state of a flow that rules receive.

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
    /// The sequence number after the last byte of the stream that was delivered; `None` if no data was
    /// delivered since the engine began to track the flow.
    pub next_seq: Option<SeqNumber>,
    /// The time of the last delivery that advanced `next_seq`; before that, the time at which the engine began
    /// to track the flow.
    pub delivered_at: Instant,
    /// The state that the rules keep for this flow ([`Rules::Memory`](super::Rules::Memory)).
    pub memory: &'a mut M,
}

/// Neighbouring held segments that will be one delivery.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The state of the run: the values that its segments share, and sums over its segments.
    pub held: Held,
    /// The earliest arrival among the segments.
    pub oldest: Instant,
    /// The reason for which the run ended: it accepts no further segment, or not the first segment of the run
    /// behind it. `None` if this is the last run and it accepts further segments.
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
