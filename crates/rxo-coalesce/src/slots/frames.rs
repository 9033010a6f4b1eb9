//! The frames of a chain, borrowed or taken out of their slots.

use core::slice;

use rxo_frame::{Frame, Frames};

use super::{Slots, next_slot, take};
use crate::links::{FrameChain, Links, NONE};

/// Iterator over the original frames of a delivery, in order. Borrows the frames.
#[derive(Debug)]
pub struct ChainFrames<'a, B> {
    pub(super) frames: &'a [Frame<B>],
    pub(super) links: &'a Links,
    pub(super) chain: FrameChain,
}

impl<B> Clone for ChainFrames<'_, B> {
    fn clone(&self) -> Self {
        Self { frames: self.frames, links: self.links, chain: self.chain }
    }
}

impl<'a, B> Iterator for ChainFrames<'a, B> {
    type Item = &'a Frame<B>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        next_slot(self.links, &mut self.chain).and_then(|slot| self.frames.get(slot))
    }
}

/// Iterator over the original frames of a delivery, in order. Moves each frame to the caller.
#[derive(Debug)]
pub struct IntoFrames<'a, B> {
    /// The next frames of the chain that are in consecutive slots, so that no link is followed.
    run: slice::IterMut<'a, Frame<B>>,
    /// All frames in the slots after `run`, from the slot `from` on.
    behind: &'a mut [Frame<B>],
    from: u32,
    links: &'a Links,
    /// The rest of the chain, after the frames in `run`.
    chain: FrameChain,
}

impl<'a, B> IntoFrames<'a, B> {
    /// Creates the iterator over the `count` frames of `chain`.
    #[inline]
    pub(crate) fn new(slots: &'a mut Slots<B>, chain: FrameChain, count: u32) -> Self {
        let Slots { frames, links } = slots;
        let mut all = Self { run: [].iter_mut(), behind: frames, from: 0, links, chain };
        let FrameChain { head, tail } = chain;
        // A chain never goes back, so this many frames between its ends leave no gap.
        if tail - head + 1 == count {
            all.begin_run(head, tail);
            all.chain = FrameChain::EMPTY;
        }
        all
    }

    /// Returns a reference to the next frame and advances the iterator; `None` after the last frame. The frame
    /// stays in the engine, which drops it after the sink has received all deliveries. Cheaper than
    /// [`Iterator::next`], which moves the frame out.
    #[inline]
    pub fn next_ref(&mut self) -> Option<&Frame<B>> {
        while self.run.len() == 0 {
            self.next_run()?;
        }
        self.run.next().map(|frame| &*frame)
    }

    /// Begins the next run of consecutive slots in the chain. `None` if the chain is empty.
    #[inline(never)]
    fn next_run(&mut self) -> Option<()> {
        let FrameChain { head, tail } = self.chain;
        if head == NONE {
            return None;
        }
        let mut last = head;
        while last != tail && self.links.next(last) == last + 1 {
            last += 1;
        }
        self.chain.head = if last == tail { NONE } else { self.links.next(last) };
        self.begin_run(head, last);
        Some(())
    }

    /// Begins a run of the frames in the slots from `first` to `last`.
    #[inline]
    fn begin_run(&mut self, first: u32, last: u32) {
        let (run, behind) =
            core::mem::take(&mut self.behind).split_at_mut((last + 1 - self.from) as usize);
        self.run = run[(first - self.from) as usize..].iter_mut();
        (self.behind, self.from) = (behind, last + 1);
    }
}

impl<B: Default> Iterator for IntoFrames<'_, B> {
    type Item = Frame<B>;

    #[inline]
    fn next(&mut self) -> Option<Frame<B>> {
        loop {
            if let Some(frame) = self.run.next() {
                return Some(take(frame));
            }
            self.next_run()?;
        }
    }
}

impl<B: Default> Frames<B> for IntoFrames<'_, B> {
    #[inline]
    fn take_buffers(&mut self, mut count: usize, mut take: impl FnMut(B)) {
        loop {
            let run = core::mem::take(&mut self.run).into_slice();
            let (taken, rest) = run.split_at_mut(count.min(run.len()));
            count -= taken.len();
            self.run = rest.iter_mut();
            // Only the buffers are moved; the frames stay without them, and nothing else of them is read.
            taken.iter_mut().for_each(|frame| take(core::mem::take(&mut frame.bytes)));
            if count == 0 || self.next_run().is_none() {
                return;
            }
        }
    }
}
