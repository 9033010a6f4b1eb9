//! What leaves: one flow, those that are due, or all.
//!
//! Separate from the engine's interface because the tiers flush, too, whenever a segment does not join what its flow
//! holds.

use rxo_frame::{FrameBuffer, Instant};

use super::Engine;
use crate::counters::Tally;
use crate::held::Held;
use crate::{Deliveries, FlushReason, Kind};

impl<B: FrameBuffer> Engine<B> {
    /// Shows the sink what is ready, and forgets it.
    pub(super) fn deliver(&mut self, sink: &mut impl FnMut(Deliveries<'_, B>)) {
        if !self.store.ready.is_empty() {
            self.store.write_headers(self.config.form);
            sink(Deliveries::new(&mut self.store));
        }
        if self.table.is_empty() {
            self.store.clear();
        } else {
            self.store.forget_ready();
        }
    }

    /// Delivers everything held, the least recently used flow first; nothing is held of the frames
    /// from the slot `to` on, which may not be taken yet.
    pub(super) fn flush_all(&mut self, to: u32, reason: FlushReason, now: Instant) {
        match self.ack_limit < 2 {
            true => self.flush_all_of::<false>(to, reason, now),
            false => self.flush_all_of::<true>(to, reason, now),
        }
    }

    /// Delivers everything held, which without `ACKS` is data only. A call each, so that neither has to spare
    /// registers for the other.
    #[inline(never)]
    fn flush_all_of<const ACKS: bool>(&mut self, to: u32, reason: FlushReason, now: Instant) {
        let mut tally = Tally::default();
        // Within a poll the places are needed again; at its end all are free at once.
        let is_mid_poll = reason == FlushReason::PacketLimit;
        self.store.ready_all::<ACKS>(to, reason, is_mid_poll, |held, acks| {
            self.table.forget_bucket(held);
            let held_ns = now.nanos_since(held.first_arrival);
            if ACKS && held.kind() == Kind::PureAck {
                self.counters.flush_acks(reason, held.segments, held_ns);
            } else {
                self.counters.flush_one(&mut tally, held.segments, held_ns);
            }
            if ACKS && !self.memory.is_off() && held.at.is_plain() {
                acks.into_iter().for_each(|acks| self.memory.note(acks));
            }
        });
        self.table.forget_all();
        self.counters.add(reason, tally);
    }

    /// When the flow that has been held longest is due; `None` if nothing is held, or no time bounds it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let limit = self.config.policy.time_limit()?;
        (!self.table.is_empty()).then(|| self.oldest_arrival + limit)
    }

    /// Flushes the flows that have been held as long as the policy allows. Examines those only, and flows that are
    /// new since the last time.
    pub(super) fn flush_overdue(&mut self, now: Instant) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        let Some(limit) = self.config.policy.time_limit() else { return };
        let oldest = self.store.find_due(|arrival| now >= arrival + limit);
        self.oldest_arrival = oldest.map_or(now, |oldest| oldest.min(now));
        while let Some(place) = self.store.next_due() {
            self.flush_held(place, FlushReason::Timeout, now);
        }
    }

    /// Flushes every flow for which `reason_of` gives a reason, the least recently used first. It is
    /// shown the place of each flow and what is held there. Walks the flows whose last frame is in the slot `from` or
    /// behind it.
    #[inline(always)]
    pub(super) fn flush_for(
        &mut self,
        from: u32,
        now: Instant,
        mut reason_of: impl FnMut(u16, &Held) -> Option<FlushReason>,
    ) {
        let mut from = from.max(self.store.slots.links.first());
        let end = self.store.end();
        while let Some((tail, place)) = self.store.slots.links.used_between(from, end) {
            if let Some(reason) = reason_of(place, &self.store.held[usize::from(place)]) {
                self.flush_held(place, reason, now);
            }
            from = tail + 1;
        }
    }

    /// Delivers what the flow at `place` holds.
    #[inline]
    pub(super) fn flush_held(&mut self, place: u16, reason: FlushReason, now: Instant) {
        self.table.remove(&mut self.store.held, place);
        self.store.slots.links.release(self.store.held[usize::from(place)].chain.tail);
        self.ready_held(place, reason, now);
    }

    /// Queues for the sink what stands at `place`, which the table does not name (any more).
    #[inline(always)]
    pub(super) fn ready_held(&mut self, place: u16, reason: FlushReason, now: Instant) {
        let held = &self.store.held[usize::from(place)];
        let held_ns = now.nanos_since(held.first_arrival);
        if held.kind() == Kind::PureAck {
            self.counters.flush_acks(reason, held.segments, held_ns);
        } else {
            self.counters.flush(reason, held.segments, held_ns);
        }
        if !self.memory.is_off() && held.at.is_plain() {
            self.memory.note(&self.store.acks[usize::from(place)]);
        }
        self.store.ready_held(place, reason);
    }
}
