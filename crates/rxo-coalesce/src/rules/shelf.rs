//! The frames of held segments, as linked lists.
//!
//! Each frame has a place that does not change while it is held. Separate from the queues, so that all flows
//! share one bounded memory. All operations are O(1) and allocate nothing after construction.

use alloc::vec::Vec;

use rxo_frame::Frame;
use rxo_wire::SeqNumber;

/// The place number that means "no frame".
pub(super) const NO_PLACE: u32 = u32::MAX;

#[derive(Debug)]
struct Place<B> {
    /// The frame of a held segment; `None` if the place is free.
    frame: Option<Frame<B>>,
    seq: SeqNumber,
    /// The place of the flow's next held segment; for a free place, the next free place.
    after: u32,
}

/// The frames of all held segments.
#[derive(Debug)]
pub(super) struct Shelf<B> {
    places: Vec<Place<B>>,
    free: u32,
    held: usize,
}

impl<B> Shelf<B> {
    /// Creates a shelf for `most` frames.
    pub(super) fn new(most: usize) -> Self {
        let place = |index: usize| Place {
            frame: None,
            seq: SeqNumber(0),
            after: if index + 1 < most { index as u32 + 1 } else { NO_PLACE },
        };
        let free = if most > 0 { 0 } else { NO_PLACE };
        Self { places: (0..most).map(place).collect(), free, held: 0 }
    }

    /// Returns the number of held frames.
    pub(super) const fn len(&self) -> usize {
        self.held
    }

    /// Returns `true` if every place is in use.
    pub(super) const fn is_full(&self) -> bool {
        self.free == NO_PLACE
    }

    /// Stores `frame` and returns the index of its place. The place is not linked to any other place yet.
    ///
    /// # Errors
    /// The frame, if every place is in use.
    pub(super) fn put(&mut self, frame: Frame<B>, seq: SeqNumber) -> Result<u32, Frame<B>> {
        let at = self.free;
        let Some(place) = self.places.get_mut(at as usize) else { return Err(frame) };
        self.free = core::mem::replace(&mut place.after, NO_PLACE);
        (place.frame, place.seq) = (Some(frame), seq);
        self.held += 1;
        Ok(at)
    }

    /// Takes the frame at the place `at`, and returns the place after it. `None` if the place is free.
    pub(super) fn take(&mut self, at: u32) -> Option<(Frame<B>, u32)> {
        let place = self.places.get_mut(at as usize)?;
        let frame = place.frame.take()?;
        let after = core::mem::replace(&mut place.after, self.free);
        self.free = at;
        self.held -= 1;
        Some((frame, after))
    }

    /// Returns the frame at the place `at`; `None` if the place is free.
    pub(super) fn frame(&self, at: u32) -> Option<&Frame<B>> {
        self.places.get(at as usize)?.frame.as_ref()
    }

    /// Returns the sequence number of the segment at the place `at`.
    pub(super) fn seq(&self, at: u32) -> SeqNumber {
        self.places.get(at as usize).map_or(SeqNumber(0), |place| place.seq)
    }

    /// Returns the place after `at` in its flow; [`NO_PLACE`] behind the last.
    pub(super) fn after(&self, at: u32) -> u32 {
        self.places.get(at as usize).map_or(NO_PLACE, |place| place.after)
    }

    /// Makes `next` the place after `at`.
    pub(super) fn link(&mut self, at: u32, next: u32) {
        if let Some(place) = self.places.get_mut(at as usize) {
            place.after = next;
        }
    }
}
