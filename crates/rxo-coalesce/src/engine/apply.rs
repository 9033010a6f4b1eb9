//! Acting on a verdict, whichever tier gave it.
//!
//! The tiers decide; here segments are held, appended, flushed or delivered. Only the Expected tier updates by
//! itself what is held, before it has the segments appended here: it knows how many they are. What
//! is done for every frame is inlined into the tier that asks for it, where most of the verdict is known
//! when this is compiled.

use rxo_frame::{Frame, FrameBuffer, Instant};
use rxo_wire::{FlowHash, FlowKey, Parsed};

use super::Engine;
use super::cursor::flow_key;
use crate::held::Segment;
use crate::reason::Reach;
use crate::single::Starts;
use crate::{BypassReason, FlushReason, Kind, Verdict};

/// The result of a tier for a frame that it took.
#[derive(Clone, Copy)]
pub(super) enum Taken {
    /// It is held at this place, and frames behind it may continue it.
    Held(u16),
    /// It was delivered, or is held and nothing goes on behind it.
    Left,
}

impl Taken {
    /// Of a frame that is held at `place`, if it is.
    #[inline(always)]
    pub(super) fn of(place: Option<u16>) -> Self {
        place.map_or(Self::Left, Self::Held)
    }
}

impl<B: FrameBuffer> Engine<B> {
    /// Acts on the verdict on a segment whose flow holds what stands at `found`. Returns where the segment
    /// is held, if it is.
    #[inline(always)]
    pub(super) fn apply(
        &mut self,
        verdict: Verdict,
        found: Option<u16>,
        segment: &Segment,
    ) -> Option<u16> {
        if let (Verdict::Append(close), Some(place)) = (verdict, found) {
            self.store.held[usize::from(place)].append(segment, &self.config.policy);
            self.note(place, segment);
            return self.append(place, segment.slot, 1, close);
        }
        if let (Some(place), Some(reason)) = (found, verdict.flushes()) {
            self.flush_held(place, reason, self.now);
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

    /// Holds the first segment of a flow and returns where.
    #[inline(always)]
    fn hold(&mut self, segment: &Segment) -> u16 {
        if self.table.is_full() {
            self.evict();
        }
        self.oldest_arrival = match self.table.is_empty() {
            true => segment.arrived_at,
            false => self.oldest_arrival.min(segment.arrived_at),
        };
        let place = self.store.free_place();
        self.store.slots.links.hold(segment.slot, place);
        let held = &mut self.store.held[usize::from(place)];
        self.table.insert(held, place, segment.acks.flow);
        held.begin(segment);
        self.note(place, segment);
        place
    }

    /// Flushes the least recently used flow, for one more. A cold call, so that the others spare no registers for it.
    #[cold]
    #[inline(never)]
    fn evict(&mut self) {
        if let Some(oldest) = self.store.slots.links.oldest() {
            self.flush_held(oldest, FlushReason::Evicted, self.now);
        }
    }

    /// Makes room in the bucket of this hash for one more flow: flushes its first if it is full. Whoever holds a flow
    /// that was not found calls this before, unless the bucket is known to be empty.
    #[cold]
    #[inline(never)]
    pub(super) fn thin_bucket(&mut self, flow: FlowHash) {
        if let Some(first) = self.table.first_of_full_bucket(&self.store.held, flow) {
            self.flush_held(first, FlushReason::Collision, self.now);
        }
    }

    /// Chains the `count` segments from `slot` on to those at `place`, which counts them already, and
    /// delivers all if they are to be closed. Returns where they are held otherwise.
    #[inline(always)]
    pub(super) fn append(
        &mut self,
        place: u16,
        slot: u32,
        count: u32,
        close: Option<FlushReason>,
    ) -> Option<u16> {
        let chain = &mut self.store.held[usize::from(place)].chain;
        let tail = core::mem::replace(&mut chain.tail, slot + count - 1);
        self.store.slots.links.append(tail, slot, count, place);
        if let Some(reason) = close {
            self.flush_held(place, reason, self.now);
            return None;
        }
        Some(place)
    }

    /// Delivers the frame in `slot` untouched. What it would overtake has been flushed.
    #[inline]
    pub(super) fn deliver_untouched(&mut self, slot: u32, at: Starts, reason: BypassReason) {
        self.counters.bypass(reason);
        self.store.ready_frame(slot, at);
    }

    /// Delivers a candidate that is not to be held, alone.
    pub(super) fn deliver_single(
        &mut self,
        (slot, at): (u32, Starts),
        arrived_at: Instant,
        reason: FlushReason,
    ) {
        self.counters.flush(reason, 1, self.now.nanos_since(arrived_at));
        self.store.ready_intact(slot, at);
    }

    /// Where the flow holds segments of this kind. Those of another kind are flushed: data, pure ACKs
    /// and datagrams are never held together. If it holds none, there is room for it in its bucket afterwards.
    #[inline(always)]
    pub(super) fn find_alike(&mut self, key: &FlowKey, flow: FlowHash, kind: Kind) -> Option<u16> {
        let Some(place) = self.table.find(&self.store.held, key, flow) else {
            if self.table.guess(flow).is_some() {
                self.thin_bucket(flow);
            }
            return None;
        };
        if self.store.held[usize::from(place)].kind() == kind {
            return Some(place);
        }
        self.flush_held(place, FlushReason::Order, self.now);
        None
    }

    /// Flushes what the packet in `slot` would overtake, which is delivered untouched for `reason`.
    #[inline(never)]
    pub(super) fn make_way(&mut self, reason: BypassReason, key: &FlowKey, slot: u32) {
        match reason.reach() {
            Reach::Nothing => {}
            Reach::Flow => self.flush_flow(key),
            Reach::Addresses => self.flush_hosts(key, slot),
        }
    }

    /// Flushes what the flow holds, for a frame of it that is delivered as it is.
    #[inline(always)]
    pub(super) fn flush_flow(&mut self, key: &FlowKey) {
        if let Some(place) = self.table.find(&self.store.held, key, self.hasher.hash(key)) {
            self.flush_held(place, FlushReason::Order, self.now);
        }
    }

    /// Delivers a frame untouched, after whatever of its flow is held.
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
