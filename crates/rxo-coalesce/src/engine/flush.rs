//! Flushes one flow, the flows whose hold time has expired, or all flows.
//!
//! Separate from the engine's public interface, because the tiers also flush a flow, whenever a segment cannot
//! join its flow's aggregate.

use rxo_frame::{FrameBuffer, Instant};

use super::Engine;
use crate::counters::Tally;
use crate::held::Held;
use crate::{Deliveries, FlushReason, Kind};

impl<B: FrameBuffer> Engine<B> {
    /// Passes all queued deliveries to the sink, then frees their frames.
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

    /// Flushes every flow, the least recently used first. `to` is the first slot that was not received yet;
    /// no flow holds a frame at or after it.
    pub(super) fn flush_all(&mut self, to: u32, reason: FlushReason, now: Instant) {
        match self.ack_limit < 2 {
            true => self.flush_all_of::<false>(to, reason, now),
            false => self.flush_all_of::<true>(to, reason, now),
        }
    }

    /// Flushes every flow. If `ACKS` is `false`, every flow must hold data. Two instances are compiled, so that
    /// neither reserves registers for the other.
    #[inline(never)]
    fn flush_all_of<const ACKS: bool>(&mut self, to: u32, reason: FlushReason, now: Instant) {
        let mut tally = Tally::default();
        // Within a poll the flow indices must be freed one by one; at its end all are freed at once.
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

    /// Returns the deadline of the flow held longest; `None` if nothing is held or the policy has no time
    /// limit.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let limit = self.config.policy.time_limit()?;
        (!self.table.is_empty()).then(|| self.oldest_arrival + limit)
    }

    /// Flushes the flows that have been held as long as the policy allows. Examines only these flows, and the
    /// flows that were added since the last call.
    pub(super) fn flush_overdue(&mut self, now: Instant) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        let Some(limit) = self.config.policy.time_limit() else { return };
        let oldest = self.store.find_due(|arrival| now >= arrival + limit);
        self.oldest_arrival = oldest.map_or(now, |oldest| oldest.min(now));
        while let Some(flow) = self.store.next_due() {
            self.flush_held(flow, FlushReason::Timeout, now);
        }
    }

    /// Flushes every flow for which `reason_of` returns a reason, the least recently used first. `reason_of`
    /// receives the flow's index and state. Visits only flows whose last frame is in the slot `from` or
    /// behind it.
    #[inline]
    pub(super) fn flush_for(
        &mut self,
        from: u32,
        now: Instant,
        mut reason_of: impl FnMut(u16, &Held) -> Option<FlushReason>,
    ) {
        let mut from = from.max(self.store.slots.links.first());
        let end = self.store.end();
        while let Some((tail, flow)) = self.store.slots.links.used_between(from, end) {
            if let Some(reason) = reason_of(flow, &self.store.held[usize::from(flow)]) {
                self.flush_held(flow, reason, now);
            }
            from = tail + 1;
        }
    }

    /// Removes `flow` from the table and queues its aggregate for delivery.
    #[inline]
    pub(super) fn flush_held(&mut self, flow: u16, reason: FlushReason, now: Instant) {
        self.table.remove(&mut self.store.held, flow);
        self.store.slots.links.release(self.store.held[usize::from(flow)].chain.tail);
        self.ready_held(flow, reason, now);
    }

    /// Queues the aggregate of `flow` for the sink. The table must no longer contain it.
    #[inline]
    pub(super) fn ready_held(&mut self, flow: u16, reason: FlushReason, now: Instant) {
        let held = &self.store.held[usize::from(flow)];
        let held_ns = now.nanos_since(held.first_arrival);
        if held.kind() == Kind::PureAck {
            self.counters.flush_acks(reason, held.segments, held_ns);
        } else {
            self.counters.flush(reason, held.segments, held_ns);
        }
        if !self.memory.is_off() && held.at.is_plain() {
            self.memory.note(&self.store.acks[usize::from(flow)]);
        }
        self.store.ready_held(flow, reason);
    }
}
