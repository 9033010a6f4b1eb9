//! The frames in hand and the aggregates made of them.
//!
//! All memory is here, allocated once. Frames are chained by index; an aggregate is a chain and
//! what [`Held`] says of it. What is ready for the sink is a queue of both.

use alloc::boxed::Box;
use alloc::vec::Vec;

use rxo_frame::Frame;

use crate::merge::{Merge, MergedHeader};
use crate::{ChecksumForm, FlushReason, Held};

/// No frame.
pub(crate) const NONE: u32 = u32::MAX;

/// Frames in order of arrival, by their slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameChain {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl FrameChain {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };
}

#[derive(Debug)]
pub(crate) struct Slot<B> {
    /// `None` in a free slot, and once the sink has taken the frame.
    pub(crate) frame: Option<Frame<B>>,
    pub(crate) next: u32,
}

/// Something for the sink.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ready {
    /// The frame in this slot, as it came.
    Frame(u32),
    /// The aggregate of this index.
    Aggregate(u16),
}

#[derive(Debug)]
pub(crate) struct Store<B> {
    pub(crate) slots: Box<[Slot<B>]>,
    free_slot: u32,
    pub(crate) held: Box<[Held]>,
    free_held: Vec<u16>,
    pub(crate) headers: Box<[MergedHeader]>,
    pub(crate) ready: Vec<Ready>,
}

impl<B: AsRef<[u8]>> Store<B> {
    /// Room for `frames` frames and for `flows` aggregates in the making.
    pub(crate) fn new(frames: usize, flows: usize, blank: Held) -> Self {
        // An aggregate waiting for the sink has two frames at least.
        let aggregates = flows + frames / 2 + 1;
        let slots = (0..frames).map(|slot| Slot {
            frame: None,
            next: if slot + 1 == frames { NONE } else { slot as u32 + 1 },
        });
        Self {
            slots: slots.collect(),
            free_slot: 0,
            held: core::iter::repeat_n(blank, aggregates).collect(),
            free_held: (0..aggregates as u16).rev().collect(),
            headers: core::iter::repeat_n(MergedHeader::EMPTY, aggregates).collect(),
            ready: Vec::with_capacity(frames),
        }
    }

    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.free_slot == NONE
    }

    /// Puts a frame in a free slot. The caller has made sure that there is one.
    #[inline]
    pub(crate) fn put(&mut self, frame: Frame<B>) -> u32 {
        let index = self.free_slot;
        let slot = &mut self.slots[index as usize];
        self.free_slot = slot.next;
        slot.frame = Some(frame);
        slot.next = NONE;
        index
    }

    /// Chains the frame in `slot` behind the one in `tail`.
    #[inline]
    pub(crate) fn chain_after(&mut self, tail: u32, slot: u32) {
        self.slots[tail as usize].next = slot;
    }

    /// The frame in `slot`.
    #[inline]
    pub(crate) fn frame(&self, slot: u32) -> &Frame<B> {
        frame_in(&self.slots, slot)
    }

    /// The bytes of the frame in `slot`.
    #[inline]
    pub(crate) fn bytes(&self, slot: u32) -> &[u8] {
        self.frame(slot).bytes()
    }

    /// A place for an aggregate in the making.
    #[inline]
    pub(crate) fn hold(&mut self, held: Held) -> u16 {
        // There are as many places as frames can ask for (see `new`).
        let index = self.free_held.pop().unwrap_or(0);
        self.held[usize::from(index)] = held;
        index
    }

    #[inline]
    pub(crate) fn ready_frame(&mut self, slot: u32) {
        self.ready.push(Ready::Frame(slot));
    }

    /// What the merged header of `held` is made from.
    #[inline]
    pub(crate) fn merge<'a>(&'a self, held: &'a Held) -> Merge<'a, B> {
        merge_of(&self.slots, held)
    }

    /// Writes the merged header of the aggregate at `index`.
    #[inline]
    pub(crate) fn write_header(&mut self, index: u16, form: ChecksumForm) {
        let index = usize::from(index);
        let merge = merge_of(&self.slots, &self.held[index]);
        self.headers[index].write(&merge, form);
    }

    /// Queues what is held at `index` for the sink: an aggregate, or its only frame as it came.
    #[inline]
    pub(crate) fn ready_held(&mut self, index: u16, reason: FlushReason) {
        let held = &mut self.held[usize::from(index)];
        if held.segments == 1 {
            let slot = held.chain.head;
            self.free_held.push(index);
            self.ready.push(Ready::Frame(slot));
        } else {
            held.reason = reason;
            self.ready.push(Ready::Aggregate(index));
        }
    }

    /// Frees everything that was ready: the sink has seen it.
    pub(crate) fn release(&mut self) {
        for index in 0..self.ready.len() {
            match self.ready[index] {
                Ready::Frame(slot) => self.free_chain(FrameChain { head: slot, tail: slot }),
                Ready::Aggregate(held) => {
                    self.free_chain(self.held[usize::from(held)].chain);
                    self.free_held.push(held);
                }
            }
        }
        self.ready.clear();
    }

    /// Gives a chain's slots back. Buffers that mean something when dropped are dropped now;
    /// others may stay until the slot is used again, which saves walking the chain.
    #[inline]
    fn free_chain(&mut self, chain: FrameChain) {
        if core::mem::needs_drop::<B>() {
            let mut slot = chain.head;
            while slot != NONE {
                let entry = &mut self.slots[slot as usize];
                entry.frame = None;
                slot = entry.next;
            }
        }
        self.slots[chain.tail as usize].next = self.free_slot;
        self.free_slot = chain.head;
    }

    pub(crate) fn chain_of(&self, ready: Ready) -> FrameChain {
        match ready {
            Ready::Frame(slot) => FrameChain { head: slot, tail: slot },
            Ready::Aggregate(index) => self.held[usize::from(index)].chain,
        }
    }

    /// Walks a chain.
    pub(crate) const fn chain(&self, chain: FrameChain) -> ChainFrames<'_, B> {
        ChainFrames { slots: &self.slots, next: chain.head }
    }
}

/// The frame in `slot`, which holds one: frames are only taken together with the delivery that
/// shows them.
#[inline]
fn frame_in<B>(slots: &[Slot<B>], slot: u32) -> &Frame<B> {
    match &slots[slot as usize].frame {
        Some(frame) => frame,
        None => unreachable!("slot {slot} is in use and empty"),
    }
}

#[inline]
fn merge_of<'a, B>(slots: &'a [Slot<B>], held: &'a Held) -> Merge<'a, B> {
    Merge {
        held,
        first: frame_in(slots, held.chain.head),
        last: frame_in(slots, held.chain.tail),
        frames: ChainFrames { slots, next: held.chain.head },
    }
}

/// Original frames, in order.
#[derive(Debug)]
pub struct ChainFrames<'a, B> {
    slots: &'a [Slot<B>],
    next: u32,
}

impl<B> Clone for ChainFrames<'_, B> {
    fn clone(&self) -> Self {
        Self { slots: self.slots, next: self.next }
    }
}

impl<'a, B> Iterator for ChainFrames<'a, B> {
    type Item = &'a Frame<B>;

    fn next(&mut self) -> Option<Self::Item> {
        let slot = self.slots.get(self.next as usize)?;
        self.next = slot.next;
        slot.frame.as_ref()
    }
}
