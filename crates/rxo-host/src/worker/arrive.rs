//! A delivery of the engine finds its cell.

use std::iter::once;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rxo_coalesce::{Deliveries, Delivery, Taken};
use rxo_frame::Instant;
use rxo_tcp::{Layout as PlainLayout, PlainSegment, Reset, Reuse, Segment};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{FlowKey, Parsed, TcpFlags};

use super::core::Core;
use crate::buffer::Buffer;
use crate::cell::{Cell, Given};
use crate::link::Resolve;
use crate::receive::{Layout, read_tcp, segment_of};
use crate::transmit::Path;

impl<B: AsRef<[u8]> + Send + 'static> Core<B> {
    /// Gives each delivery to its cell.
    pub(super) fn deliver(&mut self, now: Instant, mut deliveries: Deliveries<'_, Buffer<B>>) {
        while let Some(taken) = deliveries.take_next() {
            match taken.view() {
                Delivery::Aggregate(aggregate) => {
                    let (key, whole) = (aggregate.flow_key(), Layout::of(&aggregate));
                    let plain = PlainLayout::of_header(
                        aggregate.header(),
                        aggregate.network_at(),
                        aggregate.transport_at(),
                    );
                    match plain {
                        Some(layout) => self.deliver_run(now, key, layout, taken),
                        None => self.deliver_aggregate(now, key, whole, taken),
                    }
                }
                Delivery::Acks(acks) => self.deliver_acks(now, acks.flow_key(), acks.records()),
                Delivery::Frame(frame) => {
                    match read_tcp(frame, self.shape.link, self.shape.summer) {
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
        layout: PlainLayout,
        taken: Taken<'_, Buffer<B>>,
    ) {
        let frames = taken.into_frames();
        let mut segments = frames
            .filter_map(|frame| PlainSegment::of_frame(frame.bytes, layout, frame.arrived_at));
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
        let mut segments = taken.into_frames().filter_map(|frame| segment_of(frame, layout));
        match self.demux.find(&key) {
            Some(place) => self.give(place, |cell| cell.arrive(now, segments)),
            None => {
                if let Some(first) = segments.next() {
                    self.stranger(now, &key, first);
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
        let Some(segment) = Segment::of_frame(frame.bytes, parsed, frame.arrived_at) else {
            return;
        };
        match self.demux.find(&parsed.key) {
            None => self.stranger(now, &parsed.key, segment),
            Some(place) if segment.has(TcpFlags::SYN) => self.syn_again(now, place, segment),
            Some(place) => self.give(place, |cell| cell.arrive(now, once(segment))),
        }
    }

    fn give(&mut self, place: u32, give: impl FnOnce(&Cell<B>) -> Given) {
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

    /// A SYN for a connection there is: one in TIME-WAIT may give way (RFC 6191).
    fn syn_again(&mut self, now: Instant, place: u32, segment: Segment<Buffer<B>>) {
        let Some(slot) = self.slots.get(place) else { return };
        let reuse = slot.cell.serve(|inner| inner.connection.reuse_by(&segment)).flatten();
        let key = slot.cell.pair.reversed();
        match reuse {
            Some(reuse) if self.listener(&key).is_some_and(|listener| listener.has_room()) => {
                self.forget(place);
                self.open_passively(now, &key, segment, Some(reuse));
            }
            _ => self.give(place, |cell| cell.arrive(now, once(segment))),
        }
    }

    /// A segment for which there is no connection.
    fn stranger(&mut self, now: Instant, key: &FlowKey, segment: Segment<Buffer<B>>) {
        if !self.link.is_ours(key.destination()) {
            self.counters.not_ours += 1;
            return;
        }
        let opens = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK | TcpFlags::RST);
        if opens && self.listens(key) {
            self.open_passively(now, key, segment, None);
            return;
        }
        if let Some(reset) = Reset::answer(&segment) {
            self.reset(now, key, reset);
        }
    }

    /// Whether somebody listens for it, also since the turn began: who listens may have told the peer.
    fn listens(&mut self, key: &FlowKey) -> bool {
        self.listener(key).is_some() || self.obey() > 0 && self.listener(key).is_some()
    }

    fn open_passively(
        &mut self,
        now: Instant,
        key: &FlowKey,
        syn: Segment<Buffer<B>>,
        reuse: Option<Reuse>,
    ) {
        let listener = self.listener(key).filter(|listener| listener.has_room());
        let Some(listener) = listener.filter(|_| self.post.take_socket()) else {
            self.counters.syns_dropped += 1;
            return;
        };
        let Ok(mut connection) = self.post.settings.connection(key.reversed()) else {
            self.post.give_back_socket();
            return;
        };
        if let Some(reuse) = reuse {
            connection.follow(reuse);
        }
        connection.on_segment(now, syn);
        listener.opening.fetch_add(1, Ordering::Relaxed);
        let cell = Cell::new(connection, Arc::clone(&self.post));
        self.settle(cell, Some(listener));
    }

    /// Answers a stranger's segment, which came as `key`.
    fn reset(&mut self, now: Instant, key: &FlowKey, reset: Reset) {
        self.counters.strangers += 1;
        self.counters.resets += 1;
        let Resolve::Resolved(neighbour) = self.link.resolve(key.source(), now) else { return };
        let path = Path { pair: key.reversed(), neighbour };
        self.outbox.push(&path, &reset.transmit(), &mut 0);
    }
}
