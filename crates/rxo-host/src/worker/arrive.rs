//! A delivery of the engine passes the gate and finds its cell.

use std::iter::once;

use rxo_coalesce::{Deliveries, Delivery, Taken};
use rxo_frame::{Frame, Instant};
use rxo_tcp::{Layout as PlainLayout, Segment};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{FlowKey, Parsed};

use super::core::Core;
use crate::buffer::Buffer;
use crate::cell::{Cell, Given};
use crate::receive::{Layout, cut, is_right, read_tcp, segment_of};

impl<B: AsRef<[u8]> + Send + Sync + 'static> Core<B> {
    /// Gives each delivery that the gate lets in to its cell.
    pub(super) fn deliver(&mut self, now: Instant, mut deliveries: Deliveries<'_, Buffer<B>>) {
        while let Some(taken) = deliveries.take_next() {
            match taken.view() {
                Delivery::Aggregate(aggregate) => {
                    let (key, whole) = (aggregate.flow_key(), Layout::of(&aggregate));
                    if !self.admits(aggregate.frames().next(), &key) {
                        continue;
                    }
                    let alike = aggregate.alike_segments();
                    let plain = PlainLayout::of_header(
                        aggregate.header(),
                        aggregate.network_at(),
                        aggregate.transport_at(),
                    );
                    match plain {
                        Some(layout) => self.deliver_run(now, key, (layout, alike), taken),
                        None => self.deliver_aggregate(now, key, whole, taken),
                    }
                }
                Delivery::Acks(acks) => {
                    if self.admits(Some(acks.last()), &acks.flow_key()) {
                        self.deliver_acks(now, acks.flow_key(), acks.records());
                    }
                }
                Delivery::Frame(frame) => match read_tcp(frame, self.shape.link) {
                    Some(parsed) => {
                        let (is_intact, summer) = (taken.is_intact(), self.shape.summer);
                        let is_right = || is_right(frame, &parsed, is_intact, summer);
                        if self.link.admits_segment(frame, &parsed.key, is_right) {
                            self.deliver_frame(now, &parsed, taken);
                        }
                    }
                    None => {
                        let heard = self.link.on_frame(frame, now);
                        self.hear(now, heard);
                    }
                },
            }
        }
    }

    /// Whether the gate lets in what the engine put together, and so has verified: the frames of one
    /// delivery are of one flow and have one link header.
    #[inline]
    fn admits(&mut self, one_of_them: Option<&Frame<Buffer<B>>>, key: &FlowKey) -> bool {
        one_of_them.is_some_and(|frame| self.link.admits_segment(frame, key, || true))
    }

    fn deliver_run(
        &mut self,
        now: Instant,
        key: FlowKey,
        (layout, alike): (PlainLayout, usize),
        taken: Taken<'_, Buffer<B>>,
    ) {
        let segments = layout.run(taken.into_frames(), alike);
        match self.demux.find(&key) {
            Some(place) => self.give(place, |cell| cell.arrive_run(now, segments)),
            None => self.strangers(now, &key, segments.map(Segment::from)),
        }
    }

    /// One with options besides timestamps.
    fn deliver_aggregate(
        &mut self,
        now: Instant,
        key: FlowKey,
        layout: Layout,
        taken: Taken<'_, Buffer<B>>,
    ) {
        let segments = taken.into_frames().filter_map(|frame| segment_of(frame, layout));
        match self.demux.find(&key) {
            Some(place) => self.give(place, |cell| cell.arrive(now, segments)),
            None => self.strangers(now, &key, segments),
        }
    }

    fn deliver_acks(
        &mut self,
        now: Instant,
        key: FlowKey,
        records: impl Iterator<Item = AckRecord>,
    ) {
        match self.demux.find(&key) {
            Some(place) => self.give(place, |cell| cell.arrive_acks(now, records)),
            None => self.strangers(now, &key, records.map(|record| Segment::from(&record))),
        }
    }

    fn deliver_frame(&mut self, now: Instant, parsed: &Parsed, taken: Taken<'_, Buffer<B>>) {
        let Some(frame) = taken.into_frames().next() else { return };
        let gso = frame.gso.filter(|gso| parsed.payload_bytes() > gso.size.get().into());
        let Some(segment) = Segment::of_frame(frame.bytes, parsed, frame.arrived_at) else {
            return;
        };
        match (self.demux.find(&parsed.key), gso) {
            (Some(place), None) => self.give(place, |cell| cell.arrive(now, once(segment))),
            (Some(place), Some(gso)) => {
                self.give(place, |cell| cell.arrive_large(now, segment, gso.size));
            }
            (None, None) => self.strangers(now, &parsed.key, once(segment)),
            (None, Some(gso)) => self.strangers(now, &parsed.key, cut(segment, gso.size)),
        }
    }

    pub(super) fn give(&mut self, place: u32, give: impl FnOnce(&Cell<B>) -> Given) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        slot.is_heard = true;
        self.counters.deliveries += 1;
        match give(&slot.cell) {
            Given::Taken => self.touch(place),
            // Whoever has it marks it.
            Given::Waits => self.counters.put_off += 1,
            Given::Dropped => self.counters.backlog_drops += 1,
        }
    }
}
