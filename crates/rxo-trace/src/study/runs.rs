//! Runs, from which the deliveries under other limits on segments per aggregate are computed, without further
//! engines.
//!
//! A limit on segments only splits: one aggregate under a large limit becomes several aggregates under a small
//! limit. Therefore no engine is needed for each limit. A run contains the segments that the engine would have
//! coalesced without a limit on segments: an aggregate, and the aggregates of its flow that follow in the same
//! poll because the previous aggregate was full. The limit on bytes still applies: it is converted to a number
//! of segments of the run's segment length.
//!
//! # Contract
//! The result is exact if no packets are held beyond the end of a poll. An exception are engine rules that
//! depend on the beginning of an aggregate, such as the rule on whether IPv4 identifications increase.

use rxo_coalesce::{Deliveries, Delivery, FlushReason};

use super::count::Count;
use crate::numbered::Numbered;

/// The limits on segments per aggregate whose deliveries are counted.
pub(crate) const LIMITS: [u16; 4] = [1, 4, 16, 64];

/// The counts of all runs so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// The number of actual deliveries of the runs, under the limit of the engine.
    own: u64,
    /// The number of deliveries at each of [`LIMITS`].
    at_limits: [u64; LIMITS.len()],
    /// The runs of this poll that may continue. Each has the number of the flow, the number of segments, and
    /// the number of segments that fit into an aggregate under the limit on bytes.
    open: Vec<(u32, u64, u64)>,
}

impl Runs {
    /// Counts deliveries. `most_bytes` is the engine's limit on the bytes of an aggregate.
    #[inline]
    pub(super) fn note(&mut self, deliveries: &Deliveries<'_, Numbered>, most_bytes: u32) {
        for delivery in deliveries.iter() {
            let Delivery::Aggregate(aggregate) = &delivery else {
                if !self.open.is_empty() {
                    self.end(&delivery);
                }
                continue;
            };
            let at = aggregate.offsets();
            let header_bytes = at.payload - at.network;
            let fit =
                most_bytes.saturating_sub(header_bytes) / u32::from(aggregate.gso_size()).max(1);
            let number = delivery.frames().next().map_or(u32::MAX, |first| first.bytes.number);
            let before = self.take(number).map_or(0, |(segments, _)| segments);
            let run = (before + aggregate.segment_count() as u64, u64::from(fit.max(1)));
            self.own += 1;
            match aggregate.flush_reason() {
                FlushReason::SegmentLimit | FlushReason::ByteLimit => {
                    self.open.push((number, run.0, run.1));
                }
                _ => self.count(run),
            }
        }
    }

    /// Ends all runs, because the poll ends.
    #[inline]
    pub(super) fn end_of_poll(&mut self) {
        while let Some((_, segments, fit)) = self.open.pop() {
            self.count((segments, fit));
        }
    }

    /// Ends the run that a single segment continues.
    fn end(&mut self, delivery: &Delivery<'_, Numbered>) {
        let Some(first) = delivery.frames().next() else { return };
        if let Some((segments, fit)) = self.take(first.bytes.number) {
            self.own += 1;
            self.count((segments + 1, fit));
        }
    }

    fn take(&mut self, number: u32) -> Option<(u64, u64)> {
        let place = self.open.iter().position(|(flow, ..)| *flow == number)?;
        let (_, segments, fit) = self.open.swap_remove(place);
        Some((segments, fit))
    }

    fn count(&mut self, (segments, fit): (u64, u64)) {
        for (deliveries, limit) in self.at_limits.iter_mut().zip(LIMITS) {
            *deliveries += segments.div_ceil(fit.min(limit.into()));
        }
    }

    /// Stores the counts of the runs in `count`.
    pub(super) const fn put(&self, count: &mut Count) {
        count.limit_own = self.own;
        [count.limit_1, count.limit_4, count.limit_16, count.limit_64] = self.at_limits;
    }
}
