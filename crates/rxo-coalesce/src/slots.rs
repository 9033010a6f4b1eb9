//! Frames in slots, and the chains of them.
//!
//! Separate from the store, because the merged header and the views of deliveries need only the frames and their
//! chains.

mod frames;

use alloc::vec::Vec;

use rxo_frame::Frame;

pub use self::frames::{ChainFrames, IntoFrames};
use crate::held::Held;
use crate::links::{FrameChain, Links, NONE};

/// Frames in their slots, and the links between the slots: all data that the view of a delivery needs. Part of
/// the store, or of an owned delivery.
#[derive(Debug)]
pub(crate) struct Slots<B> {
    pub(crate) frames: Vec<Frame<B>>,
    pub(crate) links: Links,
}

impl<B> Slots<B> {
    /// Creates slots without frames or links: the frames of an owned delivery are in consecutive slots and need
    /// no links. Does not allocate.
    pub(crate) fn side_by_side() -> Self {
        Self { frames: Vec::new(), links: Links::new(0) }
    }

    /// Returns the frame in `slot`.
    #[inline]
    pub(crate) fn frame(&self, slot: u32) -> &Frame<B> {
        &self.frames[slot as usize]
    }

    /// Returns the frames of `held` as a slice if they are in consecutive slots; otherwise `None`.
    #[inline]
    pub(crate) fn run_of(&self, held: &Held) -> Option<&[Frame<B>]> {
        let FrameChain { head, tail } = held.chain;
        // A chain never goes back, so this many frames between its ends leave no gap.
        let is_run = tail - head + 1 == held.segments;
        if is_run { self.frames.get(head as usize..=tail as usize) } else { None }
    }

    /// Returns an iterator over the frames of a chain.
    pub(crate) fn chain(&self, chain: FrameChain) -> ChainFrames<'_, B> {
        ChainFrames { frames: &self.frames, links: &self.links, chain }
    }

    /// Takes the first frame off a chain; `None` if the chain is empty.
    #[inline]
    pub(crate) fn take_first(&mut self, chain: &mut FrameChain) -> Option<Frame<B>>
    where
        B: Default,
    {
        let Self { frames, links } = self;
        next_slot(links, chain).and_then(|slot| frames.get_mut(slot)).map(take)
    }
}

/// Removes the first slot from `chain` and returns it; `None` if the chain is empty.
#[inline]
fn next_slot(links: &Links, chain: &mut FrameChain) -> Option<usize> {
    let slot = chain.head;
    if slot == NONE {
        return None;
    }
    chain.head = if slot == chain.tail { NONE } else { links.next(slot) };
    Some(slot as usize)
}

#[inline]
fn take<B: Default>(frame: &mut Frame<B>) -> Frame<B> {
    // Field by field: taking only the buffer does not move the whole frame.
    let Frame { ref mut bytes, arrived_at, checksum, gso, vlan } = *frame;
    Frame { bytes: core::mem::take(bytes), arrived_at, checksum, gso, vlan }
}
