//! The frames in hand and the aggregates made of them.
//!
//! All memory is here, allocated once. Frames stand in order of arrival, and [`Links`] chains them. An
//! aggregate is a chain with its [`Held`]. Frames and aggregates that are ready for the sink stand in one
//! queue. After the sink has seen them, all are forgotten at once, unless a policy holds some frames longer. Then
//! those that left are gaps. Gaps at the end are dropped at once, those between held frames when they are more than
//! one for every [`HELD_FOR_A_GAP`] of these: so closing gaps takes a few steps for each frame that left, however many
//! are held. There are more slots than frames that may be taken in, as many as there can be gaps.

mod frames;

use alloc::boxed::Box;
use alloc::vec::Vec;

use rxo_frame::{Frame, FrameBuffer, Instant};

pub use self::frames::{ChainFrames, IntoFrames};
use crate::deadlines::Deadlines;
use crate::held::{Held, HeldAcks};
use crate::links::{GAP, Links};
use crate::merge::{Merge, MergedHeader};
use crate::pairs::Pairs;
use crate::single::Starts;
use crate::{ChecksumForm, FlushReason, Kind, work};

/// No frame.
pub(crate) const NONE: u32 = u32::MAX;
/// Gaps between held frames are closed when there are more than one for so many frames.
const HELD_FOR_A_GAP: usize = 8;

/// Slots before which all frames are known to somebody. They stay where they are between the frames when gaps are
/// closed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// To the index of pairs of hosts.
    pub(crate) pairs: u32,
    /// To the index of deadlines.
    pub(crate) deadlines: u32,
    /// To the last end of a poll.
    pub(crate) poll: u32,
}

impl Marks {
    fn map(self, to: impl Fn(u32) -> u32) -> Self {
        let Self { pairs, deadlines, poll } = self;
        Self { pairs: to(pairs), deadlines: to(deadlines), poll: to(poll) }
    }
}

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
    /// The number of frames that may be here.
    limit: usize,
    /// The number of slots whose frames have left.
    gaps: usize,
    /// Where each frame goes when gaps are closed; [`GAP`] for a gap.
    moved: Box<[u32]>,
    pub(crate) marks: Marks,
    pub(crate) held: Box<[Held]>,
    /// For each place, what is kept of pure ACKs.
    pub(crate) acks: Box<[HeldAcks]>,
    /// Places of `held` that were used and are free again. All places from `places` on are free, too.
    free_places: Vec<u16>,
    places: u32,
    pub(crate) headers: Box<[MergedHeader]>,
    pub(crate) ready: Vec<Ready>,
    /// Index of the places in `held` by the pair of addresses of their flow.
    pub(crate) pairs: Pairs,
    /// Index of the places by the arrival of their first segment.
    deadlines: Deadlines,
}

impl<B: AsRef<[u8]>> Store<B> {
    /// A store with room for `frames` frames and for the aggregates of `flows` flows. The deadline index has room for
    /// `timed` flows. Allocates all memory.
    pub(crate) fn new(frames: usize, flows: usize, timed: usize) -> Self {
        // An aggregate waiting for the sink has two frames at least.
        let places = flows + frames / 2 + 1;
        let slots = frames + frames / HELD_FOR_A_GAP;
        Self {
            slots: Slots { frames: Vec::with_capacity(slots), links: Links::new(slots) },
            limit: frames,
            gaps: 0,
            moved: core::iter::repeat_n(GAP, slots).collect(),
            marks: Marks::default(),
            held: core::iter::repeat_n(Held::BLANK, places).collect(),
            acks: core::iter::repeat_n(HeldAcks::BLANK, places).collect(),
            free_places: Vec::with_capacity(places),
            places: 0,
            headers: core::iter::repeat_n(MergedHeader::EMPTY, places).collect(),
            ready: Vec::with_capacity(frames),
            pairs: Pairs::new(places, flows),
            deadlines: Deadlines::new(timed),
        }
    }

    /// The number of frames that can still be taken in.
    pub(crate) fn room(&self) -> usize {
        self.limit + self.gaps - self.slots.frames.len()
    }

    /// The number of frames here that have not left.
    pub(crate) fn here(&self) -> usize {
        self.slots.frames.len() - self.gaps
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
                if held.at.is_plain() {
                    header.write(&Merge::new(&self.slots, held), form);
                } else {
                    header.write_unusual(&self.slots, held, form);
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
        (self.gaps, self.marks) = (0, Marks::default());
        self.free_places.clear();
        self.places = 0;
        self.ready.clear();
    }

    /// Forgets the queue. The frames in it become gaps.
    pub(crate) fn forget_ready(&mut self)
    where
        B: FrameBuffer,
    {
        if self.ready.is_empty() {
            return;
        }
        for index in 0..self.ready.len() {
            let ready = self.ready[index];
            self.gaps += self.slots.links.leave_gaps(self.chain_of(ready));
            if let Ready::Aggregate(place) | Ready::Acks(place) = ready {
                self.free_places.push(place);
            }
        }
        self.ready.clear();
        self.drop_end();
        let held = self.slots.frames.len() - self.gaps;
        if self.gaps * HELD_FOR_A_GAP > held {
            self.close_gaps();
        }
    }

    /// Drops the frames behind the last that is held.
    fn drop_end(&mut self)
    where
        B: FrameBuffer,
    {
        let frames = &mut self.slots.frames;
        let end = self.slots.links.end_without_gaps(frames.len());
        self.gaps -= frames.len() - end;
        if B::RETURN_TOGETHER {
            B::drop_all(frames.drain(end..).map(|frame| frame.bytes));
        } else {
            frames.truncate(end);
        }
        self.marks = self.marks.map(|mark| mark.min(end as u32));
    }

    /// Closes the gaps between frames, keeps their order, and updates the slots in all chains and marks.
    fn close_gaps(&mut self)
    where
        B: FrameBuffer,
    {
        let frames = self.slots.frames.len();
        let moved = &mut self.moved[..frames];
        let kept = self.slots.links.number(moved);
        self.slots.links.close_gaps(moved);
        self.marks = self.marks.map(|mark| {
            let mut behind = moved.iter().skip(mark as usize);
            behind.find(|slot| **slot != GAP).map_or(kept, |slot| *slot)
        });
        let mut slots = moved.iter();
        let mut leaves = || slots.next().is_some_and(|slot| *slot == GAP);
        if B::RETURN_TOGETHER {
            let leaving = self.slots.frames.extract_if(.., |_| leaves());
            B::drop_all(leaving.map(|frame| frame.bytes));
        } else {
            self.slots.frames.retain(|_| !leaves());
        }
        self.gaps = 0;
        self.move_chains(kept);
    }

    /// Updates the slots in all chains: gaps were closed, and `kept` frames are left.
    fn move_chains(&mut self, kept: u32) {
        let mut from = self.slots.links.first();
        while let Some((tail, place)) = self.slots.links.used_between(from, kept) {
            let chain = &mut self.held[usize::from(place)].chain;
            chain.head = self.moved[chain.head as usize];
            chain.tail = tail;
            from = tail + 1;
        }
    }

    /// Finds the flows for which `is_due` is true of the arrival of the first segment; [`Store::next_due`] gives
    /// their places. Returns the earliest arrival of the flows that are left.
    pub(crate) fn find_due(&mut self, is_due: impl Fn(Instant) -> bool) -> Option<Instant> {
        self.note_arrivals();
        self.find_noted(core::iter::empty(), is_due)
    }

    /// [`Store::find_due`] among the flows that were held when that was called last. The flows at `places`, which hold
    /// something or have left, are due as well.
    pub(crate) fn find_noted(
        &mut self,
        places: impl Iterator<Item = u16>,
        is_due: impl Fn(Instant) -> bool,
    ) -> Option<Instant> {
        let Self { slots: Slots { frames, links }, held, deadlines, .. } = self;
        let end = frames.len() as u32;
        let tail = |place: u16| {
            let tail = held[usize::from(place)].chain.tail;
            (tail < end && links.is_last_of(tail, place)).then_some(tail)
        };
        let places = places.inspect(|_| work::done(1));
        deadlines.add_due(places.filter_map(|place| Some((tail(place)?, place))));
        deadlines.search(is_due, |arrival, place| {
            tail(place).filter(|_| held[usize::from(place)].first_arrival == arrival)
        })
    }

    /// Returns the place of the next flow that is due, the least recently used first.
    pub(crate) fn next_due(&mut self) -> Option<u16> {
        self.deadlines.next_due()
    }

    /// Adds the flows to the index of deadlines that began since it was updated.
    fn note_arrivals(&mut self) {
        if self.deadlines.is_crowded() {
            self.deadlines.clear();
            self.marks.deadlines = 0;
        }
        let end = self.end();
        let from = core::mem::replace(&mut self.marks.deadlines, end);
        for place in self.slots.links.all_used_between(from, end) {
            let held = &self.held[usize::from(place)];
            if held.chain.head >= from {
                self.deadlines.note(held.first_arrival, place);
            }
        }
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
