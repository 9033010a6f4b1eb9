//! Applies the verdicts of all tiers.
//!
//! The tiers decide; this module holds, appends, flushes or delivers segments. Only the Expected tier updates
//! the held state itself before it calls `append`, because it handles several segments at once. The functions
//! that run for every frame are inlined into the tier that calls them, where most of the verdict is known at
//! compile time.

use rxo_frame::{Frame, FrameBuffer, Instant};
use rxo_wire::{FlowHash, FlowKey, Parsed};

use super::Engine;
use super::cursor::flow_key;
use crate::held::Segment;
use crate::reason::Reach;
use crate::single::Starts;
use crate::{BypassReason, FlushReason, Kind, Verdict};

/// The result of a tier that has processed a frame.
#[derive(Clone, Copy)]
pub(super) enum Taken {
    /// The frame is held by the flow with this index, and later frames may be appended to the flow.
    Held(u16),
    /// The frame was delivered, or no later frame of the batch is to be appended to its flow at once.
    Left,
}

impl Taken {
    /// Returns [`Taken::Held`] with the index `flow`, or [`Taken::Left`] if `flow` is `None`.
    #[inline]
    pub(super) fn of(flow: Option<u16>) -> Self {
        flow.map_or(Self::Left, Self::Held)
    }
}

impl<B: FrameBuffer> Engine<B> {
    /// Applies the verdict on a segment. `found` is the index of its flow; `None` if the flow holds nothing.
    /// Returns the index of the flow that holds the segment afterwards, or `None` if the segment was delivered.
    #[inline(always)]
    pub(super) fn apply(
        &mut self,
        verdict: Verdict,
        found: Option<u16>,
        segment: &Segment,
    ) -> Option<u16> {
        if let (Verdict::Append(close), Some(flow)) = (verdict, found) {
            self.store.held[usize::from(flow)].append(segment, &self.config.policy);
            self.note(flow, segment);
            return self.append(flow, segment.slot, 1, close);
        }
        // The held segments leave before this one is delivered or held, so that the order is kept.
        if let (Some(flow), Some(reason)) = (found, verdict.flushes()) {
            self.flush_held(flow, reason, self.now);
        }
        match verdict {
            Verdict::Start(None) | Verdict::FlushThenStart(_, None) | Verdict::Append(_) => {
                return Some(self.hold(segment));
            }
            Verdict::Start(Some(close)) | Verdict::FlushThenStart(_, Some(close)) => {
                // By value, so that the segment need not be in memory.
                let Segment { slot, at, arrived_at, .. } = *segment;
                self.deliver_single((slot, at), arrived_at, close);
            }
            Verdict::Bypass(reason) | Verdict::FlushThenBypass(_, reason) => {
                self.deliver_untouched(segment.slot, segment.at, reason);
            }
        }
        self.note_unheld(segment, verdict);
        None
    }

    /// Holds the first segment of a flow and returns the flow's index.
    #[inline(always)]
    fn hold(&mut self, segment: &Segment) -> u16 {
        if self.table.is_full() {
            self.evict();
        }
        self.oldest_arrival = match self.table.is_empty() {
            true => segment.arrived_at,
            false => self.oldest_arrival.min(segment.arrived_at),
        };
        let flow = self.store.reserve_index();
        self.store.slots.links.hold(segment.slot, flow);
        let held = &mut self.store.held[usize::from(flow)];
        self.table.insert(held, flow, segment.acks.flow);
        held.begin(segment);
        self.note(flow, segment);
        flow
    }

    /// Evicts the least recently used flow, so that another flow can be held. Marked cold, so that its callers
    /// reserve no registers for it.
    #[cold]
    #[inline(never)]
    fn evict(&mut self) {
        if let Some(oldest) = self.store.slots.links.oldest() {
            self.flush_held(oldest, FlushReason::Evicted, self.now);
        }
    }

    /// Flushes the first flow in the bucket of this hash if the bucket is full. The caller must call this before
    /// it holds a new flow, unless it knows that the bucket is empty.
    #[cold]
    #[inline(never)]
    pub(super) fn thin_bucket(&mut self, hash: FlowHash) {
        if let Some(first) = self.table.first_of_full_bucket(&self.store.held, hash) {
            self.flush_held(first, FlushReason::Collision, self.now);
        }
    }

    /// Links the `count` segments from `slot` on to `flow`, whose [`Held`](crate::held::Held) already includes
    /// them, and flushes the flow if `close` is a reason. Returns `flow` if the flow is still held.
    #[inline(always)]
    pub(super) fn append(
        &mut self,
        flow: u16,
        slot: u32,
        count: u32,
        close: Option<FlushReason>,
    ) -> Option<u16> {
        let chain = &mut self.store.held[usize::from(flow)].chain;
        let tail = core::mem::replace(&mut chain.tail, slot + count - 1);
        self.store.slots.links.append(tail, slot, count, flow);
        if let Some(reason) = close {
            self.flush_held(flow, reason, self.now);
            return None;
        }
        Some(flow)
    }

    /// Delivers the frame in `slot` untouched. The caller must have flushed all held segments that the frame
    /// would overtake.
    #[inline]
    pub(super) fn deliver_untouched(&mut self, slot: u32, at: Starts, reason: BypassReason) {
        self.counters.bypass(reason);
        self.store.ready_frame(slot, at);
    }

    /// Delivers a candidate alone, without holding it.
    pub(super) fn deliver_single(
        &mut self,
        (slot, at): (u32, Starts),
        arrived_at: Instant,
        reason: FlushReason,
    ) {
        self.counters.flush(reason, 1, self.now.nanos_since(arrived_at));
        self.store.ready_intact(slot, at);
    }

    /// Returns the index at which the flow is held if the flow holds packets of this kind. Flushes a flow that
    /// holds another kind, because data, pure ACKs and datagrams are never held together. If the result is
    /// `None`, the bucket of the flow is no longer full.
    #[inline(always)]
    pub(super) fn find_alike(&mut self, key: &FlowKey, hash: FlowHash, kind: Kind) -> Option<u16> {
        let Some(flow) = self.table.find(&self.store.held, key, hash) else {
            if self.table.guess(hash).is_some() {
                self.thin_bucket(hash);
            }
            return None;
        };
        if self.store.held[usize::from(flow)].kind() == kind {
            return Some(flow);
        }
        self.flush_held(flow, FlushReason::Order, self.now);
        None
    }

    /// Flushes all held segments that the packet in `slot` would overtake. The caller then delivers the packet
    /// untouched for `reason`.
    #[inline(never)]
    pub(super) fn make_way(&mut self, reason: BypassReason, key: &FlowKey, slot: u32) {
        match reason.reach() {
            Reach::Nothing => {}
            Reach::Flow => self.flush_flow(key),
            Reach::Addresses => self.flush_hosts(key, slot),
        }
    }

    /// Flushes the flow with this key, because a frame of the flow is about to be delivered untouched.
    #[inline(always)]
    pub(super) fn flush_flow(&mut self, key: &FlowKey) {
        if let Some(flow) = self.table.find(&self.store.held, key, self.hasher.hash(key)) {
            self.flush_held(flow, FlushReason::Order, self.now);
        }
    }

    /// Delivers a frame untouched, after the held segments of its flow.
    pub(super) fn bypass(
        &mut self,
        frame: &Frame<B>,
        slot: u32,
        parsed: &Parsed,
        reason: BypassReason,
    ) {
        if !self.table.is_empty() || !self.memory.is_off() {
            let key = flow_key(parsed.key, frame);
            self.make_way(reason, &key, slot);
            self.note_bypassed(frame, parsed, &key, reason);
        }
        self.deliver_untouched(slot, Starts::of(parsed), reason);
    }
}
