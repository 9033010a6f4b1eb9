//! The cells of the worker. A place is an index, and is reused.

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

/// A cell, and the state that only the worker needs.
#[derive(Debug)]
pub(crate) struct Slot<B> {
    pub(crate) cell: Arc<Cell<B>>,
    pub(crate) path: Path,
    /// When the neighbour is to be resolved again; `None` while it is not known.
    pub(crate) resolved_until: Option<Instant>,
    /// Whether something has arrived since the neighbour was resolved.
    pub(crate) is_heard: bool,
    /// Counts IPv4 identifications.
    pub(crate) ids: u16,
    /// Whether it waits for its neighbour.
    pub(crate) is_unresolved: bool,
    /// When it was last served.
    pub(crate) served_at: Instant,
    /// Whether it is to be served in this turn.
    pub(crate) is_dirty: bool,
    /// Its turn in the line for the device.
    pub(crate) turn: Turn,
    /// Its ticket if it keeps frames.
    pub(crate) kept: Option<Ticket>,
    /// All text before this is in our own memory.
    pub(crate) owned_until: SeqNumber,
    /// The listener that waits until it is open.
    pub(crate) listener: Option<Arc<Listening<B>>>,
    /// Its ticket if it is an orphan.
    pub(crate) orphan: Option<Ticket>,
    /// Whether this host has opened it.
    pub(crate) is_active: bool,
    /// What the fast path must know of it.
    pub(crate) acks: AckState,
}

impl<B> Slot<B> {
    /// Puts its `place` into the queue `dirty` of those that are to be served, unless it is there.
    #[inline]
    pub(crate) fn touch(&mut self, place: u32, dirty: &mut VecDeque<u32>) {
        if !self.is_dirty {
            self.is_dirty = true;
            dirty.push_back(place);
        }
    }
}

/// All cells.
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

    /// All cells with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Slot<B>)> {
        let places = self.slots.iter().enumerate();
        places.filter_map(|(place, slot)| Some((place as u32, slot.as_ref()?)))
    }

    /// The cells at `most` places from `from` on, and the place after them.
    pub(crate) fn page(&self, from: u32, most: usize) -> (impl Iterator<Item = &Slot<B>>, usize) {
        let start = (from as usize).min(self.slots.len());
        let end = start.saturating_add(most).min(self.slots.len());
        (self.slots[start..end].iter().flatten(), end)
    }

    /// All places are below this.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
