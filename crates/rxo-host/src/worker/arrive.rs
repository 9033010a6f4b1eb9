//! Passes each delivery of the engine to its connection, if the gate admits the delivery.

use rxo_coalesce::{Deliveries, Delivery, Taken};
use rxo_frame::{Frame, Instant};
use rxo_wire::FlowKey;

use super::connections::Connections;
use super::core::Core;
use super::network::Network;
use super::unmatched::Unmatched;
use crate::link::FrameOutcome;
use crate::receive::{Delivered, Form};

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    /// Passes each delivery to its connection, unless the gate refuses it because it is not for this host.
    pub(super) fn deliver(&mut self, now: Instant, mut deliveries: Deliveries<'_, B>) {
        while let Some(taken) = deliveries.take_next() {
            if let Some((key, form)) = self.network.admit(&mut self.connections, now, &taken) {
                self.on_arrival(now, &key, form.arrival(taken.into_frames()));
            }
        }
    }

    /// Passes an arrival of the flow `key` to its connection. Without a connection, a group membership or the
    /// handler of segments without a connection (`unmatched.rs`) processes it.
    fn on_arrival(&mut self, now: Instant, key: &FlowKey, arrival: Delivered<'_, B>) {
        let Self { connections, clock, network, cast, .. } = self;
        match connections.demux.find(key) {
            Some(place) => {
                cast.before_arrival(&connections.slots, place, now);
                connections.give(place, |cell| cell.on_arrival(now, arrival));
            }
            None if key.destination().is_multicast() => {
                network.memberships.take(connections, key, now, arrival);
            }
            None => Unmatched { connections, clock, network, cast, now }.take(key, arrival),
        }
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Network<B> {
    /// Returns the flow and the form of a delivery that the gate admits. `None` if the gate refuses the
    /// delivery, or if it is not TCP; the link has then handled the delivery. The delivery contains the offsets
    /// of its headers, so they are not parsed again.
    #[inline]
    fn admit(
        &mut self,
        connections: &mut Connections<B>,
        now: Instant,
        taken: &Taken<'_, B>,
    ) -> Option<(FlowKey, Form)> {
        let delivery = taken.view();
        let (first, key) = match delivery {
            Delivery::Aggregate(aggregate) => (aggregate.frames().next()?, aggregate.flow_key()),
            Delivery::Acks(acks) => (acks.last(), acks.flow_key()),
            Delivery::Frame(single) => match single.flow_key() {
                Some(key) => (single.frame(), key),
                None => return self.admit_unread(connections, now, single.frame()),
            },
        };
        // Other single frames are rare, or ACKs, whose size does not matter.
        if first.gso.is_some() || matches!(delivery, Delivery::Aggregate(_)) {
            connections.post.memory().queue().recent().record(first);
        }
        let at = delivery.offsets()?;
        let is_admitted = self.link.admits(first, &key, at, taken.is_intact());
        is_admitted.then(|| (key, Form::of(&delivery, at)))
    }

    /// Implements [`Network::admit`] for a frame without a known flow: a frame that is not TCP, or has unusual
    /// headers.
    #[cold]
    fn admit_unread(
        &mut self,
        connections: &mut Connections<B>,
        now: Instant,
        frame: &Frame<B>,
    ) -> Option<(FlowKey, Form)> {
        self.notify_shards(frame);
        let outcome = self.link.on_frame(frame, now);
        if let FrameOutcome::ToGroup(datagram) = outcome {
            let payload = frame.bytes().get(datagram.at.payload_range()).unwrap_or_default();
            self.collect(connections, &datagram.key, payload);
            return None;
        }
        let parsed = self.handle_message(outcome, connections, now)?;
        Some((parsed.key, Form::of_frame(frame, parsed.at)))
    }
}
