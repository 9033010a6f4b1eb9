//! A delivery of the engine finds its cell.

use std::iter::once;
use std::num::NonZeroU16;

use rxo_coalesce::{Deliveries, Delivery, Taken};
use rxo_frame::Instant;
use rxo_tcp::{Layout as PlainLayout, Reset, Segment};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{FlowKey, Parsed, TcpFlags};

use super::core::Core;
use crate::buffer::Buffer;
use crate::cell::{Cell, Given};
use crate::receive::{Layout, read_tcp, segment_of};

impl<B: AsRef<[u8]> + Send + Sync + 'static> Core<B> {
    /// Gives each delivery to its cell.
    pub(super) fn deliver(&mut self, now: Instant, mut deliveries: Deliveries<'_, Buffer<B>>) {
        while let Some(taken) = deliveries.take_next() {
            match taken.view() {
                Delivery::Aggregate(aggregate) => {
                    let (key, whole) = (aggregate.flow_key(), Layout::of(&aggregate));
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
                Delivery::Acks(acks) => self.deliver_acks(now, acks.flow_key(), acks.records()),
                Delivery::Frame(frame) => {
                    let (link, summer) = (self.shape.link, self.shape.summer);
                    match read_tcp(frame, taken.is_intact(), link, summer) {
                        Some(parsed) => self.deliver_frame(now, &parsed, taken),
                        None => {
                            let heard = self.link.on_frame(frame, now);
                            self.hear(now, heard);
                        }
                    }
                }
            }
        }
    }

    fn deliver_run(
        &mut self,
        now: Instant,
        key: FlowKey,
        (layout, alike): (PlainLayout, usize),
        taken: Taken<'_, Buffer<B>>,
    ) {
        let mut segments = layout.run(taken.into_frames(), alike);
        match self.demux.find(&key) {
            Some(place) => self.give(place, |cell| cell.arrive_run(now, segments)),
            None => {
                if let Some(first) = segments.next() {
                    self.stranger(now, &key, first.into());
                }
            }
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
        self.deliver_segments(now, &key, segments);
    }

    /// Segments that came together.
    fn deliver_segments(
        &mut self,
        now: Instant,
        key: &FlowKey,
        mut segments: impl Iterator<Item = Segment<Buffer<B>>>,
    ) {
        match self.demux.find(key) {
            Some(place) => self.give(place, |cell| cell.arrive(now, segments)),
            None => {
                if let Some(first) = segments.next() {
                    self.stranger(now, key, first);
                }
            }
        }
    }

    fn deliver_acks(
        &mut self,
        now: Instant,
        key: FlowKey,
        mut records: impl Iterator<Item = AckRecord>,
    ) {
        match self.demux.find(&key) {
            Some(place) => self.give(place, |cell| cell.arrive_acks(now, records)),
            None => {
                if let Some(first) = records.next() {
                    let reset = Reset::answer_ack(first.ack);
                    self.reset(now, &key, reset);
                }
            }
        }
    }

    fn deliver_frame(&mut self, now: Instant, parsed: &Parsed, taken: Taken<'_, Buffer<B>>) {
        let Some(frame) = taken.into_frames().next() else { return };
        let gso = frame.gso.filter(|gso| parsed.payload_bytes() > gso.size.get().into());
        let Some(segment) = Segment::of_frame(frame.bytes, parsed, frame.arrived_at) else {
            return;
        };
        if let Some(gso) = gso {
            return self.deliver_large(now, &parsed.key, segment, gso.size);
        }
        match self.demux.find(&parsed.key) {
            None => self.stranger(now, &parsed.key, segment),
            Some(place) if segment.has(TcpFlags::SYN) => self.syn_again(now, place, segment),
            Some(place) => self.give(place, |cell| cell.arrive(now, once(segment))),
        }
    }

    /// One that stands for several.
    fn deliver_large(
        &mut self,
        now: Instant,
        key: &FlowKey,
        segment: Segment<Buffer<B>>,
        size: NonZeroU16,
    ) {
        match self.demux.find(key) {
            Some(place) => self.give(place, |cell| cell.arrive_large(now, segment, size)),
            None => self.stranger(now, key, segment),
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
