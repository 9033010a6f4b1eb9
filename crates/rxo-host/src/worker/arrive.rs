//! Gives each delivery of the engine to its cell, through the gate.

use rxo_coalesce::{Deliveries, Delivery, Taken};
use rxo_frame::{Frame, Instant};
use rxo_wire::FlowKey;

use super::core::Core;
use crate::cell::{Cell, Given};
use crate::receive::{Delivered, Form};

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    /// Gives each delivery that passes the gate to its cell.
    pub(super) fn deliver(&mut self, now: Instant, mut deliveries: Deliveries<'_, B>) {
        while let Some(taken) = deliveries.take_next() {
            if let Some((key, form)) = self.admit(now, &taken) {
                self.on_arrival(now, &key, form.arrival(taken.into_frames()));
            }
        }
    }

    /// The flow and the form of a delivery that passes the gate. `None` if the gate refuses it, or it is not
    /// TCP: then the link has taken it. The delivery says where its headers are, so none is parsed again.
    #[inline]
    fn admit(&mut self, now: Instant, taken: &Taken<'_, B>) -> Option<(FlowKey, Form)> {
        let delivery = taken.view();
        let (first, key) = match delivery {
            Delivery::Aggregate(aggregate) => (aggregate.frames().next()?, aggregate.flow_key()),
            Delivery::Acks(acks) => (acks.last(), acks.flow_key()),
            Delivery::Frame(single) => match single.flow_key() {
                Some(key) => (single.frame(), key),
                None => return self.admit_unread(now, single.frame()),
            },
        };
        // Other single frames are few, or ACKs.
        if first.gso.is_some() || matches!(delivery, Delivery::Aggregate(_)) {
            self.post.memory().queue().recent().came(first);
        }
        let at = delivery.offsets()?;
        let is_admitted = self.link.admits(first, &key, at, taken.is_intact());
        is_admitted.then(|| (key, Form::of(&delivery, at)))
    }

    /// [`Core::admit`] of a frame for which the engine tells no flow: it is not TCP, or its headers are unusual.
    #[cold]
    fn admit_unread(&mut self, now: Instant, frame: &Frame<B>) -> Option<(FlowKey, Form)> {
        self.tell_others(frame);
        let heard = self.link.on_frame(frame, now);
        let parsed = self.hear(now, heard)?;
        Some((parsed.key, Form::of_frame(frame, parsed.at)))
    }

    /// Gives an arrival of the flow `key` to its connection. Without one it is a stranger's.
    fn on_arrival(&mut self, now: Instant, key: &FlowKey, arrival: Delivered<'_, B>) {
        match self.demux.find(key) {
            Some(place) => self.give(now, place, |cell| cell.on_arrival(now, arrival)),
            None if key.destination().is_multicast() => self.on_group_arrival(now, key, arrival),
            None => self.strangers(now, key, arrival),
        }
    }

    pub(super) fn give(&mut self, now: Instant, place: u32, give: impl FnOnce(&Cell<B>) -> Given) {
        self.before_arrival(place, now);
        let Some(slot) = self.slots.get_mut(place) else { return };
        slot.is_heard = true;
        self.counters.deliveries += 1;
        match give(&slot.cell) {
            Given::Taken => self.touch(place),
            // The thread that holds the lock marks the cell.
            Given::Waits => self.counters.put_off += 1,
            // What was put off before may have been taken nevertheless.
            Given::Dropped => {
                self.counters.backlog_drops += 1;
                self.touch(place);
            }
        }
    }
}
