//! The table of the worker's connections. A `place` is an index into this table, and is reused after a
//! connection is removed.

use std::collections::VecDeque;
use std::sync::Arc;

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use super::line::Turn;
use super::ticket::Ticket;
use crate::cell::Cell;
use crate::fast::AckState;
use crate::socket::Listening;
use crate::transmit::Path;

/// A connection, with the state that only the worker needs.
#[derive(Debug)]
pub(crate) struct Slot<B> {
    pub(crate) cell: Arc<Cell<B>>,
    pub(crate) path: Path,
    /// The time at which the neighbour must be resolved again; `None` while its address is unknown.
    pub(crate) resolved_until: Option<Instant>,
    /// `true` if a segment of the connection has arrived since the neighbour was resolved.
    pub(crate) has_received: bool,
    /// The IPv4 ID of the connection's next packet.
    pub(crate) ids: u16,
    /// `true` while the connection waits for its neighbour to be resolved.
    pub(crate) is_unresolved: bool,
    /// The time at which the connection was last served.
    pub(crate) served_at: Instant,
    /// `true` if the connection is in the queue of connections to be served.
    pub(crate) is_dirty: bool,
    /// The state of the connection in the line of connections that wait for the device's queue.
    pub(crate) turn: Turn,
    /// The ticket of the connection in the queue of connections that keep frames of the device; `None` if it
    /// is not in that queue.
    pub(crate) kept: Option<Ticket>,
    /// The sequence number before which all data is in the host's own memory.
    pub(crate) owned_until: SeqNumber,
    /// The listener to which the connection is passed when it is established; `None` if this host has opened
    /// the connection, and after the connection was passed on.
    pub(crate) listener: Option<Arc<Listening<B>>>,
    /// The ticket of the connection in the queue of orphans; `None` if the connection is not in that queue.
    pub(crate) orphan: Option<Ticket>,
    /// `true` if this host has opened the connection.
    pub(crate) is_active: bool,
    /// The state of the connection that the fast path for ACKs keeps.
    pub(crate) acks: AckState,
}

impl<B> Slot<B> {
    /// Appends the index `place` of this connection to `dirty`, the queue of connections to be served, unless
    /// it is in the queue already.
    #[inline]
    pub(crate) fn touch(&mut self, place: u32, dirty: &mut VecDeque<u32>) {
        if !self.is_dirty {
            self.is_dirty = true;
            dirty.push_back(place);
        }
    }
}

/// All connections of a worker, by index.
#[derive(Debug)]
pub(crate) struct Slots<B> {
    slots: Vec<Option<Slot<B>>>,
    free: Vec<u32>,
}

impl<B> Slots<B> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, slot: Slot<B>) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = Some(slot);
                place
            }
            None => {
                self.slots.push(Some(slot));
                (self.slots.len() - 1) as u32
            }
        }
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<Slot<B>> {
        let slot = self.slots.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(slot)
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&Slot<B>> {
        self.slots.get(place as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut Slot<B>> {
        self.slots.get_mut(place as usize)?.as_mut()
    }

    /// Returns all connections with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Slot<B>)> {
        let places = self.slots.iter().enumerate();
        places.filter_map(|(place, slot)| Some((place as u32, slot.as_ref()?)))
    }

    /// Returns the connections at `most` indices beginning with `from`, and the index after them.
    pub(crate) fn page(&self, from: u32, most: usize) -> (impl Iterator<Item = &Slot<B>>, usize) {
        let start = (from as usize).min(self.slots.len());
        let end = start.saturating_add(most).min(self.slots.len());
        (self.slots[start..end].iter().flatten(), end)
    }

    /// Returns an upper bound of the connections' indices.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
