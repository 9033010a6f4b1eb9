//! Handles messages of the link, and connections that wait for the link address of a neighbour.

use rxo_device::{DeviceError, FrameSink};
use rxo_frame::{Duration, Frame, Instant};
use rxo_wire::Parsed;

use super::connections::Connections;
use super::network::Network;
use super::slots::Slot;
use crate::link::{FrameOutcome, Link, Resolve};
use crate::shards::shared_copy;

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Network<B> {
    /// Handles a message of the link. If the message is a TCP segment, returns its headers, and the connections
    /// must process the segment; `None` for other messages.
    pub(super) fn handle_message(
        &mut self,
        outcome: FrameOutcome,
        connections: &mut Connections<B>,
        now: Instant,
    ) -> Option<Parsed> {
        match outcome {
            FrameOutcome::Segment(parsed) => return Some(parsed),
            // Only the worker that has received a datagram uses it.
            FrameOutcome::Nothing | FrameOutcome::ToGroup(_) => {}
            FrameOutcome::Neighbour(_) => self.touch_unresolved(connections),
            FrameOutcome::TooBig(report) => connections.notify(&report.pair, |connection| {
                connection.on_packet_too_big(now, report.seq, report.mtu);
            }),
            FrameOutcome::Unreachable(report) => connections.notify(&report.pair, |connection| {
                connection.on_unreachable(report.seq, report.is_hard);
            }),
        }
        None
    }

    /// Sends a copy of `frame` to the other shards if all shards need this frame.
    pub(super) fn notify_shards(&self, frame: &Frame<B>) {
        if !self.others.is_empty() && self.link.is_for_all_shards(frame) {
            let copy = shared_copy(frame);
            self.others.iter().for_each(|other| other.send_shared(copy.clone()));
        }
    }

    /// Processes the copies of frames that other shards have received.
    pub(super) fn receive_from_shards(&mut self, connections: &mut Connections<B>, now: Instant) {
        for copy in std::mem::take(&mut self.shared_frames) {
            connections.post.record_processed();
            let outcome = self.link.receive_copy(&copy, now);
            self.handle_message(outcome, connections, now);
        }
    }

    /// Puts the connections that wait for a neighbour into the queue of connections to be served.
    pub(super) fn touch_unresolved(&mut self, connections: &mut Connections<B>) {
        for place in std::mem::take(&mut self.unresolved) {
            if let Some(slot) = connections.slots.get_mut(place) {
                slot.is_unresolved = false;
            }
            connections.touch(place);
        }
    }

    /// Sends the frames that the link has queued.
    pub(super) fn send_link<O: FrameSink>(&mut self, sink: &mut O) -> Result<(), DeviceError> {
        while let Some(frame) = self.link.poll_transmit() {
            self.outbox.push_frame(&frame);
            if self.outbox.is_full() {
                self.outbox.send::<O, B>(sink, None)?;
            }
        }
        Ok(())
    }
}

/// The state of the neighbour to which a connection's packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeighbourState {
    /// The neighbour's Ethernet address is known.
    Known,
    /// The neighbour's Ethernet address was requested and is not known yet, or the route no longer exists.
    Waits,
    /// The neighbour does not answer address requests.
    Unreachable,
}

/// Resolves the neighbour of `slot`, unless the last result is still valid. Returns the neighbour's state.
#[inline]
pub(super) fn reach<B>(slot: &mut Slot<B>, link: &mut Link, now: Instant) -> NeighbourState {
    let is_fresh = slot.resolved_until.is_some_and(|until| now < until);
    if is_fresh { NeighbourState::Known } else { resolve(slot, link, now) }
}

fn resolve<B>(slot: &mut Slot<B>, link: &mut Link, now: Instant) -> NeighbourState {
    let peer = slot.path.pair.destination();
    // A packet that was received proves that the neighbour is reachable.
    if std::mem::take(&mut slot.has_received) && slot.resolved_until.is_some() {
        link.confirm(peer, now);
    }
    slot.resolved_until = None;
    match link.resolve(peer, now) {
        Resolve::Resolved(neighbour) => {
            slot.path.set_destination(neighbour);
            slot.resolved_until = Some(now + RESOLVED_FOR);
            NeighbourState::Known
        }
        Resolve::Unreachable => NeighbourState::Unreachable,
        Resolve::Pending | Resolve::NoRoute => NeighbourState::Waits,
    }
}

/// The time after which the neighbour is resolved again, so that a changed address is noticed.
const RESOLVED_FOR: Duration = Duration::from_secs(1);
