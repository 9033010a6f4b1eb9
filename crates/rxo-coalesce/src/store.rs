//! The frames in hand and the aggregates made of them.
//!
//! All memory is here, allocated once. Frames stand in order of arrival, and [`Links`] chains them. An
//! aggregate is a chain with its [`Held`]. Frames and aggregates that are ready for the sink stand in one
//! queue. After the sink has seen them, all are forgotten at once. Only frames that a policy holds longer
//! are moved to the front.

mod frames;

use alloc::boxed::Box;
use alloc::vec::Vec;

use rxo_frame::{Frame, FrameBuffer};

pub use self::frames::{ChainFrames, IntoFrames};
use crate::held::{Held, HeldAcks};
use crate::links::Links;
use crate::merge::{Merge, MergedHeader};
use crate::pairs::Pairs;
use crate::single::Starts;
use crate::{ChecksumForm, FlushReason, Kind};

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

/// Something for the sink. Its tag has 16 bits, so that it lies with the starts in one word.
#[derive(Clone, Copy, Debug)]
#[repr(u16)]
pub(crate) enum Ready {
    /// The frame in this slot, as it came, and where its headers begin. Not known to be intact.
    Frame(Starts, u32),
    /// A frame that was found intact: its flow held it alone.
    Intact(Starts, u32),
    /// The aggregate of this place.
    Aggregate(u16),
    /// The pure ACKs of this place.
    Acks(u16),
}

#[derive(Debug)]
pub(crate) struct Store<B> {
    pub(crate) slots: Slots<B>,
    /// Where each frame goes when gaps are closed; `NONE` for those that leave them.
    moved: Box<[u32]>,
    pub(crate) held: Box<[Held]>,
    /// For each place, what is kept of pure ACKs.
    pub(crate) acks: Box<[HeldAcks]>,
    /// Places of `held` that were used and are free again. All places from `places` on are free, too.
    free_places: Vec<u16>,
    places: u32,
    pub(crate) headers: Box<[MergedHeader]>,
    pub(crate) ready: Vec<Ready>,
    /// Index of the places by their hosts.
    pub(crate) pairs: Pairs,
}

impl<B: AsRef<[u8]>> Store<B> {
    /// A store with room for `frames` frames and for the aggregates of `flows` flows. Allocates all memory.
    pub(crate) fn new(frames: usize, flows: usize) -> Self {
        // An aggregate waiting for the sink has two frames at least.
        let places = flows + frames / 2 + 1;
        Self {
            slots: Slots { frames: Vec::with_capacity(frames), links: Links::new(frames) },
            moved: core::iter::repeat_n(NONE, frames).collect(),
            held: core::iter::repeat_n(Held::BLANK, places).collect(),
            acks: core::iter::repeat_n(HeldAcks::BLANK, places).collect(),
            free_places: Vec::with_capacity(places),
            places: 0,
            headers: core::iter::repeat_n(MergedHeader::EMPTY, places).collect(),
            ready: Vec::with_capacity(frames),
            pairs: Pairs::new(places, flows),
        }
    }

    /// The number of frames that can still be taken in.
    pub(crate) fn room(&self) -> usize {
        self.slots.links.capacity() - self.slots.frames.len()
    }

    /// Takes in a whole batch, for which there is room, by a single copy. Returns the slot of its
    /// first frame.
    pub(crate) fn take_in(&mut self, batch: &mut Vec<Frame<B>>) -> u32 {
        let from = self.slots.frames.len();
        self.slots.frames.append(batch);
        self.slots.links.take_in(from, self.slots.frames.len());
        from as u32
    }

    /// Takes in as many of `frames` as there is room for. Returns the slot of the first of them.
    pub(crate) fn take_some_in(&mut self, frames: &mut impl Iterator<Item = Frame<B>>) -> u32 {
        let (from, room) = (self.slots.frames.len(), self.room());
        self.slots.frames.extend(frames.by_ref().take(room));
        self.slots.links.take_in(from, self.slots.frames.len());
        from as u32
    }

    /// Takes all frames out of the store, so that they can be read while everything else is written. Nothing
    /// may be merged or delivered before [`Store::take_back`].
    #[inline]
    pub(crate) fn lend_frames(&mut self) -> Vec<Frame<B>> {
        core::mem::take(&mut self.slots.frames)
    }

    #[inline]
    pub(crate) fn take_back(&mut self, frames: Vec<Frame<B>>) {
        self.slots.frames = frames;
    }

    /// The number of frames: the slot after the last.
    pub(crate) const fn end(&self) -> u32 {
        self.slots.frames.len() as u32
    }

    /// The frame in `slot`.
    #[inline(always)]
    pub(crate) fn frame(&self, slot: u32) -> &Frame<B> {
        self.slots.frame(slot)
    }

    /// A free place for an aggregate.
    #[inline(always)]
    pub(crate) fn free_place(&mut self) -> u16 {
        // There are as many places as frames can ask for (see `new`).
        self.free_places.pop().unwrap_or_else(|| {
            self.places += 1;
            (self.places - 1) as u16
        })
    }

    #[inline(always)]
    pub(crate) fn ready_frame(&mut self, slot: u32, at: Starts) {
        self.ready.push(Ready::Frame(at, slot));
    }

    /// Queues a frame that was found intact.
    pub(crate) fn ready_intact(&mut self, slot: u32, at: Starts) {
        self.ready.push(Ready::Intact(at, slot));
    }

    /// Queues what is held at `place` for the sink: an aggregate, or its only frame as it came.
    #[inline(always)]
    pub(crate) fn ready_held(&mut self, place: u16, reason: FlushReason) {
        let held = &mut self.held[usize::from(place)];
        if held.segments == 1 {
            self.ready.push(Ready::Intact(held.at, held.chain.head));
            self.free_places.push(place);
        } else {
            held.reason = reason;
            let is_acks = held.kind() == Kind::PureAck;
            self.ready.push(if is_acks { Ready::Acks(place) } else { Ready::Aggregate(place) });
        }
    }

    /// Queues everything held of the frames before the slot `to`, which is all that is held, and
    /// shows it to `see`, with what is kept besides, the least recently used flow first. Places of single
    /// frames are free again at once only if `reuses`. Without `ACKS` none of it is pure ACKs.
    #[inline(always)]
    pub(crate) fn ready_all<const ACKS: bool>(
        &mut self,
        to: u32,
        reason: FlushReason,
        reuses: bool,
        mut see: impl FnMut(&Held, Option<&HeldAcks>),
    ) {
        let Self { slots: Slots { links, .. }, held, acks, ready, free_places, .. } = self;
        for place in links.release_before(to) {
            let Some(held) = held.get_mut(usize::from(place)) else { break };
            let (segments, is_acks) = (held.segments, ACKS && held.kind() == Kind::PureAck);
            see(held, if ACKS { acks.get(usize::from(place)) } else { None });
            if segments == 1 {
                ready.push(Ready::Intact(held.at, held.chain.head));
                if reuses {
                    free_places.push(place);
                }
            } else {
                held.reason = reason;
                ready.push(if is_acks { Ready::Acks(place) } else { Ready::Aggregate(place) });
            }
        }
    }

    /// Writes the header of every aggregate that is ready.
    #[inline(always)]
    pub(crate) fn write_headers(&mut self, form: ChecksumForm) {
        // Taken out, so that headers can be written while everything else is read.
        let mut headers = core::mem::take(&mut self.headers);
        for ready in &self.ready {
            if let Ready::Aggregate(place) = *ready {
                let (held, header) =
                    (&self.held[usize::from(place)], &mut headers[usize::from(place)]);
                if held.at.is_datagram() {
                    header.write_of_datagrams(&self.slots, held, form);
                } else {
                    header.write(&Merge::new(&self.slots, held), form);
                }
            }
        }
        self.headers = headers;
    }

    /// Forgets everything. Nothing may be held, and the sink must have seen the queue.
    pub(crate) fn clear(&mut self)
    where
        B: FrameBuffer,
    {
        if B::RETURN_TOGETHER {
            B::drop_all(self.slots.frames.drain(..).map(|frame| frame.bytes));
        } else {
            self.slots.frames.clear();
        }
        self.slots.links.clear();
        self.pairs.forget_slots();
        self.free_places.clear();
        self.places = 0;
        self.ready.clear();
    }

    /// Forgets the queue, and moves the frames that are held to the front.
    pub(crate) fn compact(&mut self)
    where
        B: FrameBuffer,
    {
        if self.ready.is_empty() {
            return;
        }
        self.moved[..self.slots.frames.len()].fill(0);
        for index in 0..self.ready.len() {
            let ready = self.ready[index];
            self.leave_gaps(self.chain_of(ready));
            if let Ready::Aggregate(place) | Ready::Acks(place) = ready {
                self.free_places.push(place);
            }
        }
        self.ready.clear();
        self.pairs.forget_slots();
        self.close_gaps();
    }

    fn leave_gaps(&mut self, chain: FrameChain) {
        let mut slot = chain.head;
        loop {
            self.moved[slot as usize] = NONE;
            if slot == chain.tail {
                return;
            }
            slot = self.slots.links.next(slot);
        }
    }

    /// Closes the gaps between frames, keeps their order, and updates the slots in all chains.
    fn close_gaps(&mut self)
    where
        B: FrameBuffer,
    {
        let frames = self.slots.frames.len();
        let mut kept = 0;
        for moved in self.moved[..frames].iter_mut().filter(|moved| **moved != NONE) {
            *moved = kept;
            kept += 1;
        }
        self.slots.links.close_gaps(&self.moved[..frames], NONE);
        let mut moved = self.moved.iter();
        let mut leaves = || moved.next().is_some_and(|slot| *slot == NONE);
        if B::RETURN_TOGETHER {
            let leaving = self.slots.frames.extract_if(.., |_| leaves());
            B::drop_all(leaving.map(|frame| frame.bytes));
        } else {
            self.slots.frames.retain(|_| !leaves());
        }
        let mut from = self.slots.links.first();
        while let Some((tail, place)) =
            self.slots.links.used_from(from).filter(|(tail, _)| *tail < kept)
        {
            let chain = &mut self.held[usize::from(place)].chain;
            chain.head = self.moved[chain.head as usize];
            chain.tail = tail;
            from = tail + 1;
        }
    }

    /// The number of frames before the slot `to` that are ready for the sink. Walks their chains.
    pub(crate) fn ready_before(&self, to: u32) -> u32 {
        let slots_before = |chain: FrameChain| {
            let next = |slot: &u32| (*slot != chain.tail).then(|| self.slots.links.next(*slot));
            core::iter::successors(Some(chain.head), next).take_while(|slot| *slot < to).count()
        };
        self.ready.iter().map(|ready| slots_before(self.chain_of(*ready)) as u32).sum()
    }

    pub(crate) fn chain_of(&self, ready: Ready) -> FrameChain {
        match ready {
            Ready::Frame(_, slot) | Ready::Intact(_, slot) => FrameChain { head: slot, tail: slot },
            Ready::Aggregate(place) | Ready::Acks(place) => self.held[usize::from(place)].chain,
        }
    }

    /// How many frames are in the chain of `ready`.
    pub(crate) fn count_of(&self, ready: Ready) -> u32 {
        match ready {
            Ready::Frame(..) | Ready::Intact(..) => 1,
            // No GSO frame is held, so each frame is one segment.
            Ready::Aggregate(place) | Ready::Acks(place) => self.held[usize::from(place)].segments,
        }
    }

    /// Takes the first frame off a chain.
    pub(crate) fn take_first(&mut self, chain: &mut FrameChain) -> Option<Frame<B>>
    where
        B: Default,
    {
        take_first(&mut self.slots, chain)
    }
}

/// Frames in their slots, and how they are chained: all that the view of a delivery reads of frames. They stand
/// in the store, or in an owned delivery.
#[derive(Debug)]
pub(crate) struct Slots<B> {
    frames: Vec<Frame<B>>,
    pub(crate) links: Links,
}

impl<B> Slots<B> {
    /// No frames yet, and no links: frames that stand side by side need none. Does not allocate.
    pub(crate) fn side_by_side() -> Self {
        Self { frames: Vec::new(), links: Links::new(0) }
    }

    /// The frames.
    pub(crate) const fn frames_mut(&mut self) -> &mut Vec<Frame<B>> {
        &mut self.frames
    }

    /// The frame in `slot`.
    #[inline(always)]
    pub(crate) fn frame(&self, slot: u32) -> &Frame<B> {
        &self.frames[slot as usize]
    }

    /// The frames of `held` if they stand side by side, as a run does.
    #[inline]
    pub(crate) fn run_of(&self, held: &Held) -> Option<&[Frame<B>]> {
        let FrameChain { head, tail } = held.chain;
        // A chain never goes back, so this many frames between its ends leave no gap.
        let is_run = tail - head + 1 == held.segments;
        if is_run { self.frames.get(head as usize..=tail as usize) } else { None }
    }

    /// Walks a chain.
    pub(crate) fn chain(&self, chain: FrameChain) -> ChainFrames<'_, B> {
        ChainFrames { frames: &self.frames, links: &self.links, chain }
    }
}

#[inline]
fn take_first<B: Default>(slots: &mut Slots<B>, chain: &mut FrameChain) -> Option<Frame<B>> {
    let Slots { frames, links } = slots;
    next_slot(links, chain).and_then(|slot| frames.get_mut(slot)).map(take)
}

/// The first slot of a chain, without which `chain` goes on. `None` if there is none.
#[inline]
fn next_slot(links: &Links, chain: &mut FrameChain) -> Option<usize> {
    let slot = chain.head;
    if slot == NONE {
        return None;
    }
    chain.head = if slot == chain.tail { NONE } else { links.next(slot) };
    Some(slot as usize)
}

#[inline(always)]
fn take<B: Default>(frame: &mut Frame<B>) -> Frame<B> {
    // Field by field: taking only the buffer does not move the whole frame.
    let Frame { ref mut bytes, arrived_at, checksum, gso, vlan } = *frame;
    Frame { bytes: core::mem::take(bytes), arrived_at, checksum, gso, vlan }
}
