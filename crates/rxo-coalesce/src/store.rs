//! The received frames and the aggregates made of them.
//!
//! The store owns the frames' memory, which is allocated once. Frames are in order of arrival, and [`Links`]
//! chains them. An aggregate is a chain with its [`Held`]. Frames and aggregates that are ready for the sink are
//! in one queue. After the sink has received the queue, all frames are removed at once, unless the policy still
//! holds some of them. In that case the slots of the delivered frames become gaps. Gaps after the last held frame
//! are removed at once. Gaps between held frames are closed when there is more than one per [`HELD_FOR_A_GAP`]
//! held frames, so the cost per delivered frame is bounded, however many are held. The store has more slots than
//! frames that it may contain: one additional slot for each possible gap.
//!
//! Two indices occur everywhere in the engine: `slot` is the index of a frame, and `flow` is the index of a
//! flow and of its aggregate in [`Store::held`].

use alloc::boxed::Box;
use alloc::vec::Vec;

use rxo_frame::{Frame, FrameBuffer, Instant};

use crate::deadlines::Deadlines;
use crate::held::{Held, HeldAcks};
use crate::links::{FrameChain, GAP, Links};
use crate::merge::{Merge, MergedHeader};
use crate::pairs::Pairs;
use crate::single::Starts;
use crate::slots::Slots;
use crate::{ChecksumForm, FlushReason, Kind, work};

/// The minimum number of held frames per gap. If there are fewer held frames per gap, all gaps are closed.
const HELD_FOR_A_GAP: usize = 8;

/// Marks: for each index, and for the end of a poll, the slot before which all frames were processed. When gaps
/// are closed, each mark stays between the same two frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// The slot before which the index of pairs of hosts has processed all frames.
    pub(crate) pairs: u32,
    /// The slot before which the index of deadlines has processed all frames.
    pub(crate) deadlines: u32,
    /// The slot after the last frame that was received before the last end of a poll.
    pub(crate) poll: u32,
}

impl Marks {
    fn map(self, to: impl Fn(u32) -> u32) -> Self {
        let Self { pairs, deadlines, poll } = self;
        Self { pairs: to(pairs), deadlines: to(deadlines), poll: to(poll) }
    }
}

/// A delivery that is ready for the sink. Its tag has 16 bits, so that it shares one word with the offsets.
#[derive(Clone, Copy, Debug)]
#[repr(u16)]
pub(crate) enum Ready {
    /// A frame to deliver as it arrived, by its slot, with the offsets of its headers. Its checksum was not
    /// verified.
    Frame(Starts, u32),
    /// A frame with a right or trusted checksum that was the only held frame of its flow.
    Intact(Starts, u32),
    /// The aggregate of the flow with this index.
    Aggregate(u16),
    /// The held pure ACKs of the flow with this index.
    Acks(u16),
}

#[derive(Debug)]
pub(crate) struct Store<B> {
    pub(crate) slots: Slots<B>,
    /// The maximum number of frames in the store.
    limit: usize,
    /// The number of slots whose frames were delivered.
    gaps: usize,
    /// The new slot of each frame while gaps are closed; [`GAP`] for a gap.
    moved: Box<[u32]>,
    pub(crate) marks: Marks,
    pub(crate) held: Box<[Held]>,
    /// For each flow index, the additional state of the pure ACKs that the flow holds.
    pub(crate) acks: Box<[HeldAcks]>,
    /// Indices of `held` that were used and are free again. Indices from `used_indices` on were never used,
    /// and are free, too.
    free_indices: Vec<u16>,
    used_indices: u32,
    pub(crate) headers: Box<[MergedHeader]>,
    pub(crate) ready: Vec<Ready>,
    /// Index of the held flows by their pair of hosts.
    pub(crate) pairs: Pairs,
    /// Index of the held flows by the arrival time of their first segment.
    deadlines: Deadlines,
}

impl<B: AsRef<[u8]>> Store<B> {
    /// Creates a store for `frames` frames and the aggregates of `flows` flows, with a deadline index for
    /// `timed` flows. Allocates all memory.
    pub(crate) fn new(frames: usize, flows: usize, timed: usize) -> Self {
        // An aggregate that waits for the sink has at least two frames.
        let indices = flows + frames / 2 + 1;
        let slots = frames + frames / HELD_FOR_A_GAP;
        Self {
            slots: Slots { frames: Vec::with_capacity(slots), links: Links::new(slots) },
            limit: frames,
            gaps: 0,
            moved: core::iter::repeat_n(GAP, slots).collect(),
            marks: Marks::default(),
            held: core::iter::repeat_n(Held::BLANK, indices).collect(),
            acks: core::iter::repeat_n(HeldAcks::BLANK, indices).collect(),
            free_indices: Vec::with_capacity(indices),
            used_indices: 0,
            headers: core::iter::repeat_n(MergedHeader::EMPTY, indices).collect(),
            ready: Vec::with_capacity(frames),
            pairs: Pairs::new(indices, flows),
            deadlines: Deadlines::new(timed),
        }
    }

    /// Returns the number of frames for which the store still has space.
    pub(crate) fn room(&self) -> usize {
        self.limit + self.gaps - self.slots.frames.len()
    }

    /// Returns the number of frames in the store that were not delivered.
    pub(crate) fn undelivered(&self) -> usize {
        self.slots.frames.len() - self.gaps
    }

    /// Appends a whole batch with a single copy; there must be enough free slots. Returns the slot of its
    /// first frame.
    pub(crate) fn take_in(&mut self, batch: &mut Vec<Frame<B>>) -> u32 {
        let from = self.slots.frames.len();
        self.slots.frames.append(batch);
        self.slots.links.take_in(from, self.slots.frames.len());
        from as u32
    }

    /// Appends as many of `frames` as there are free slots. Returns the slot of the first one.
    pub(crate) fn take_some_in(&mut self, frames: &mut impl Iterator<Item = Frame<B>>) -> u32 {
        let (from, room) = (self.slots.frames.len(), self.room());
        self.slots.frames.extend(frames.by_ref().take(room));
        self.slots.links.take_in(from, self.slots.frames.len());
        from as u32
    }

    /// Moves all frames out of the store, so that they can be read while all other state is written. No
    /// aggregate may be read or delivered before [`Store::take_back`].
    #[inline]
    pub(crate) fn take_frames(&mut self) -> Vec<Frame<B>> {
        core::mem::take(&mut self.slots.frames)
    }

    #[inline]
    pub(crate) fn take_back(&mut self, frames: Vec<Frame<B>>) {
        self.slots.frames = frames;
    }

    /// Returns the slot after the last frame.
    pub(crate) const fn end(&self) -> u32 {
        self.slots.frames.len() as u32
    }

    /// Returns the frame in `slot`.
    #[inline]
    pub(crate) fn frame(&self, slot: u32) -> &Frame<B> {
        self.slots.frame(slot)
    }

    /// Reserves a free index for an aggregate.
    #[inline]
    pub(crate) fn reserve_index(&mut self) -> u16 {
        // There are as many indices as frames can need (see `new`).
        self.free_indices.pop().unwrap_or_else(|| {
            self.used_indices += 1;
            (self.used_indices - 1) as u16
        })
    }

    #[inline]
    pub(crate) fn ready_frame(&mut self, slot: u32, at: Starts) {
        self.ready.push(Ready::Frame(at, slot));
    }

    /// Queues a frame whose checksum is right or trusted.
    pub(crate) fn ready_intact(&mut self, slot: u32, at: Starts) {
        self.ready.push(Ready::Intact(at, slot));
    }

    /// Queues the aggregate of `flow` for the sink; a single frame is queued as it arrived.
    #[inline(always)]
    pub(crate) fn ready_held(&mut self, flow: u16, reason: FlushReason) {
        let held = &mut self.held[usize::from(flow)];
        if held.segments == 1 {
            self.ready.push(Ready::Intact(held.at, held.chain.head));
            self.free_indices.push(flow);
        } else {
            held.reason = reason;
            let is_acks = held.kind() == Kind::PureAck;
            self.ready.push(if is_acks { Ready::Acks(flow) } else { Ready::Aggregate(flow) });
        }
    }

    /// Queues the held frames of all flows, the least recently used flow first. All held frames must be before
    /// the slot `to`. Calls `see` with the state of each flow. Frees the flow indices of single frames at once
    /// only if `reuses` is `true`. If `ACKS` is `false`, no flow may hold pure ACKs.
    #[inline(always)]
    pub(crate) fn ready_all<const ACKS: bool>(
        &mut self,
        to: u32,
        reason: FlushReason,
        reuses: bool,
        mut see: impl FnMut(&Held, Option<&HeldAcks>),
    ) {
        let Self { slots: Slots { links, .. }, held, acks, ready, free_indices, .. } = self;
        for flow in links.release_before(to) {
            let Some(held) = held.get_mut(usize::from(flow)) else { break };
            let (segments, is_acks) = (held.segments, ACKS && held.kind() == Kind::PureAck);
            see(held, if ACKS { acks.get(usize::from(flow)) } else { None });
            if segments == 1 {
                ready.push(Ready::Intact(held.at, held.chain.head));
                if reuses {
                    free_indices.push(flow);
                }
            } else {
                held.reason = reason;
                ready.push(if is_acks { Ready::Acks(flow) } else { Ready::Aggregate(flow) });
            }
        }
    }

    /// Writes the header of every aggregate in the queue.
    #[inline(always)]
    pub(crate) fn write_headers(&mut self, form: ChecksumForm) {
        // Moved out, so that headers can be written while everything else is read.
        let mut headers = core::mem::take(&mut self.headers);
        for ready in &self.ready {
            if let Ready::Aggregate(flow) = *ready {
                let (held, header) =
                    (&self.held[usize::from(flow)], &mut headers[usize::from(flow)]);
                if held.at.is_plain() {
                    header.write(&Merge::new(&self.slots, held), form);
                } else {
                    header.write_unusual(&self.slots, held, form);
                }
            }
        }
        self.headers = headers;
    }

    /// Removes all frames. No flow may hold frames, and the sink must have received the queue.
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
        self.free_indices.clear();
        self.used_indices = 0;
        self.ready.clear();
    }

    /// Empties the queue, after the sink has received it. The slots of its frames become gaps.
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
            if let Ready::Aggregate(flow) | Ready::Acks(flow) = ready {
                self.free_indices.push(flow);
            }
        }
        self.ready.clear();
        self.drop_end();
        let held = self.slots.frames.len() - self.gaps;
        if self.gaps * HELD_FOR_A_GAP > held {
            self.close_gaps();
        }
    }

    /// Drops the frames after the last held one.
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

    /// Closes the gaps between frames without changing their order, and updates the slots in all chains and
    /// marks.
    fn close_gaps(&mut self)
    where
        B: FrameBuffer,
    {
        let frames = self.slots.frames.len();
        let moved = &mut self.moved[..frames];
        let kept = self.slots.links.number(moved);
        self.slots.links.close_gaps(moved);
        self.marks = self.marks.map(|mark| {
            // A mark moves to the first kept frame at or after it.
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

    /// Updates the slots in all chains after gaps were closed; `kept` frames are left.
    fn move_chains(&mut self, kept: u32) {
        let mut from = self.slots.links.first();
        while let Some((tail, flow)) = self.slots.links.used_between(from, kept) {
            let chain = &mut self.held[usize::from(flow)].chain;
            chain.head = self.moved[chain.head as usize];
            chain.tail = tail;
            from = tail + 1;
        }
    }

    /// Finds the flows whose first arrival time satisfies `is_due`; [`Store::next_due`] then returns their
    /// indices. Returns the earliest arrival time of the flows that are not due.
    pub(crate) fn find_due(&mut self, is_due: impl Fn(Instant) -> bool) -> Option<Instant> {
        self.note_arrivals();
        self.find_noted(core::iter::empty(), is_due)
    }

    /// Like [`Store::find_due`], but does not find flows that began since the last update of the index. The flows
    /// in `flows` are due as well, unless they were flushed.
    pub(crate) fn find_noted(
        &mut self,
        flows: impl Iterator<Item = u16>,
        is_due: impl Fn(Instant) -> bool,
    ) -> Option<Instant> {
        let Self { slots: Slots { frames, links }, held, deadlines, .. } = self;
        let end = frames.len() as u32;
        let tail = |flow: u16| {
            let tail = held[usize::from(flow)].chain.tail;
            (tail < end && links.is_last_of(tail, flow)).then_some(tail)
        };
        let flows = flows.inspect(|_| work::done(1));
        deadlines.add_due(flows.filter_map(|flow| Some((tail(flow)?, flow))));
        deadlines.search(is_due, |arrival, flow| {
            tail(flow).filter(|_| held[usize::from(flow)].first_arrival == arrival)
        })
    }

    /// Returns the index of the next due flow, the least recently used first; `None` after the last.
    pub(crate) fn next_due(&mut self) -> Option<u16> {
        self.deadlines.next_due()
    }

    /// Adds to the index of deadlines the flows that began since its last update.
    fn note_arrivals(&mut self) {
        if self.deadlines.needs_compaction() {
            self.deadlines.clear();
            self.marks.deadlines = 0;
        }
        let end = self.end();
        let from = core::mem::replace(&mut self.marks.deadlines, end);
        for flow in self.slots.links.all_used_between(from, end) {
            let held = &self.held[usize::from(flow)];
            if held.chain.head >= from {
                self.deadlines.note(held.first_arrival, flow);
            }
        }
    }

    pub(crate) fn chain_of(&self, ready: Ready) -> FrameChain {
        match ready {
            Ready::Frame(_, slot) | Ready::Intact(_, slot) => FrameChain { head: slot, tail: slot },
            Ready::Aggregate(flow) | Ready::Acks(flow) => self.held[usize::from(flow)].chain,
        }
    }

    /// Returns the number of frames in the chain of `ready`.
    pub(crate) fn count_of(&self, ready: Ready) -> u32 {
        match ready {
            Ready::Frame(..) | Ready::Intact(..) => 1,
            // GSO frames are never held, so each frame is one segment.
            Ready::Aggregate(flow) | Ready::Acks(flow) => self.held[usize::from(flow)].segments,
        }
    }

    /// Takes the first frame off a chain; `None` if the chain is empty.
    pub(crate) fn take_first(&mut self, chain: &mut FrameChain) -> Option<Frame<B>>
    where
        B: Default,
    {
        self.slots.take_first(chain)
    }
}
