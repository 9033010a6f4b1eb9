//! Chains of frames, and the order in which flows were used.
//!
//! Each frame slot has one word, its link. The link is the next slot of the frame's chain, or, for the last frame
//! of a chain, the index of the flow that holds the chain. A new frame is linked to the slot after its own. If
//! consecutive frames belong to one flow, these links are already right, so nothing is written. Once the sink has
//! received a frame, the frame's link is set to [`OUT`], which marks the slot as a gap.
//!
//! Slots are in order of arrival, so the last frames of all flows are in the order in which the flows were last
//! used. So no list of flows is needed: a cursor that only moves forward finds the least recently used flow.

use alloc::boxed::Box;

use crate::work;

/// The slot number that means "no frame".
pub(crate) const NONE: u32 = u32::MAX;

/// A chain of frames in order of arrival: the slots of its first and last frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameChain {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl FrameChain {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };
}

/// The link of a frame that ends no held chain. Once the sink has received the frame, its slot is a gap.
const OUT: u32 = u32::MAX;
/// The value that [`Links::number`] writes for a gap, which gets no new slot.
pub(crate) const GAP: u32 = u32::MAX;
/// The bit that is added to a flow index to mark the last frame of its chain.
const LAST: u32 = 1 << 31;

#[derive(Debug)]
pub(crate) struct Links {
    /// The link of each slot: the next slot of its chain, or a flow index with [`LAST`], or [`OUT`].
    after: Box<[u32]>,
    /// The cursor: a slot before which no frame is the last frame of a held flow.
    oldest_from: u32,
}

impl Links {
    /// Creates links for `frames` slots.
    pub(crate) fn new(frames: usize) -> Self {
        Self { after: core::iter::repeat_n(OUT, frames).collect(), oldest_from: 0 }
    }

    /// Links the new frames in the slots `from..to`, each to the slot after it.
    pub(crate) fn take_in(&mut self, from: usize, to: usize) {
        for (link, next) in self.after[from..to].iter_mut().zip(from as u32 + 1..) {
            *link = next;
        }
    }

    /// Makes the frame in `slot` the only frame of `flow`.
    #[inline]
    pub(crate) fn hold(&mut self, slot: u32, flow: u16) {
        self.after[slot as usize] = LAST | u32::from(flow);
    }

    /// Links `count` frames, at least one, in the slots from `slot` on, behind the frame in `tail`, the last
    /// frame of `flow`. None of the `count` frames may be held already.
    #[inline(always)]
    pub(crate) fn append(&mut self, tail: u32, slot: u32, count: u32, flow: u16) {
        self.after[tail as usize] = slot;
        self.hold(slot + count - 1, flow);
    }

    /// Removes the chain that ends in `tail`.
    #[inline]
    pub(crate) fn release(&mut self, tail: u32) {
        self.after[tail as usize] = OUT;
    }

    /// Removes all chains that end before the slot `to`, and returns the indices of their flows, the least
    /// recently used first.
    #[inline]
    pub(crate) fn release_before(&mut self, to: u32) -> impl Iterator<Item = u16> + use<'_> {
        let from = core::mem::replace(&mut self.oldest_from, to);
        work::done(to.saturating_sub(from) as usize);
        let links = self.after.get(from as usize..to as usize).unwrap_or_default();
        links.iter().filter(|link| is_last(**link)).map(|link| *link as u16)
    }

    /// Iterates over the indices of all flows whose last frame is in the slots `from..to`.
    pub(crate) fn all_used_between(
        &self,
        from: u32,
        to: u32,
    ) -> impl Iterator<Item = u16> + use<'_> {
        let from = from.max(self.oldest_from) as usize;
        work::done((to as usize).saturating_sub(from));
        let links = self.after.get(from..to as usize).unwrap_or_default();
        links.iter().filter(|link| is_last(**link)).map(|link| *link as u16)
    }

    /// Returns the slot of the next frame in the chain of `slot`; the result is meaningless for the last frame.
    /// For a slot without a link, returns the slot after it.
    #[inline]
    pub(crate) fn next(&self, slot: u32) -> u32 {
        self.after.get(slot as usize).map_or(slot + 1, |next| *next)
    }

    /// Returns `true` if the frame in `slot` is the last frame of `flow`.
    #[inline]
    pub(crate) fn is_last_of(&self, slot: u32, flow: u16) -> bool {
        let after = self.after.get(slot as usize);
        slot >= self.oldest_from && after == Some(&(LAST | u32::from(flow)))
    }

    /// Returns the index of the flow whose last frame is in `slot`; `None` if there is no such flow.
    #[inline]
    pub(crate) fn held_at(&self, slot: u32) -> Option<u16> {
        let link = *self.after.get(slot as usize)?;
        (slot >= self.oldest_from && is_last(link)).then_some(link as u16)
    }

    /// The slot at which an iteration over all flows begins, the least recently used first.
    #[inline]
    pub(crate) const fn first(&self) -> u32 {
        self.oldest_from
    }

    /// Returns the first flow whose last frame is in the slots `slot..to`, as that frame's slot and the
    /// flow's index; `None` if there is none. An iteration over all flows examines every frame once.
    #[inline]
    pub(crate) fn used_between(&self, slot: u32, to: u32) -> Option<(u32, u16)> {
        let links = self.after.get(slot as usize..to as usize)?;
        let (ahead, link) = links.iter().enumerate().find(|(_, link)| is_last(**link))?;
        work::done(ahead + 1);
        Some((slot + ahead as u32, *link as u16))
    }

    /// Returns the index of the least recently used flow; `None` if no flow is held. All calls together
    /// examine every frame once, because the cursor only moves forward.
    pub(crate) fn oldest(&mut self) -> Option<u16> {
        let links = self.after.get(self.oldest_from as usize..)?;
        let (ahead, link) = links.iter().enumerate().find(|(_, link)| is_last(**link))?;
        work::done(ahead + 1);
        self.oldest_from += ahead as u32;
        Some(*link as u16)
    }

    /// Resets the cursor, after all chains were removed.
    pub(crate) const fn clear(&mut self) {
        self.oldest_from = 0;
    }

    /// Marks the frames of a chain as gaps, after the sink has received them. Returns their number.
    pub(crate) fn leave_gaps(&mut self, chain: FrameChain) -> usize {
        let (mut slot, mut count) = (chain.head, 1);
        loop {
            let next = core::mem::replace(&mut self.after[slot as usize], OUT);
            if slot == chain.tail {
                return count;
            }
            (slot, count) = (next, count + 1);
        }
    }

    /// Returns the slot after the last frame before `end` that is not a gap; 0 if there is none.
    pub(crate) fn end_without_gaps(&self, end: usize) -> usize {
        self.after[..end].iter().rposition(|link| *link != OUT).map_or(0, |last| last + 1)
    }

    /// Writes to `moved` the slot that each frame gets when gaps are closed, or [`GAP`] for a gap. Returns
    /// the number of frames.
    pub(crate) fn number(&self, moved: &mut [u32]) -> u32 {
        work::done(moved.len());
        let mut kept = 0;
        for (to, link) in moved.iter_mut().zip(&self.after) {
            *to = if *link == OUT { GAP } else { kept };
            kept += u32::from(*link != OUT);
        }
        kept
    }

    /// Moves the links of all frames to their new slots in `moved`, which [`Links::number`] wrote.
    pub(crate) fn close_gaps(&mut self, moved: &[u32]) {
        for (slot, to) in moved.iter().enumerate().filter(|(_, to)| **to != GAP) {
            // The link to a slot is renumbered; a flow index at the end of a chain is kept.
            let after = self.after[slot];
            self.after[*to as usize] = if after < LAST { moved[after as usize] } else { after };
        }
        self.oldest_from = 0;
    }
}

#[inline]
const fn is_last(link: u32) -> bool {
    link >= LAST && link != OUT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(links: &Links) -> alloc::vec::Vec<u16> {
        let mut from = links.first();
        core::iter::from_fn(|| {
            let (slot, flow) = links.used_between(from, links.after.len() as u32)?;
            from = slot + 1;
            Some(flow)
        })
        .collect()
    }

    #[test]
    fn flows_stand_in_the_order_of_their_last_frames() {
        let mut links = Links::new(8);
        links.take_in(0, 8);
        links.hold(0, 7);
        links.hold(1, 9);
        links.append(0, 2, 1, 7);
        links.append(1, 3, 2, 9);
        assert_eq!(order(&links), [7, 9]);
        assert_eq!((links.next(0), links.next(1), links.next(3)), (2, 3, 4));
        links.release(2);
        assert_eq!(links.oldest(), Some(9));
        assert_eq!(links.release_before(5).collect::<alloc::vec::Vec<_>>(), [9]);
        assert_eq!(links.oldest(), None);
    }

    #[test]
    fn a_chain_that_left_is_gaps_and_those_at_the_end_need_no_closing() {
        let mut links = Links::new(6);
        links.take_in(0, 6);
        links.hold(1, 7);
        links.hold(0, 9);
        links.append(0, 2, 3, 9);
        links.release(4);
        assert_eq!(links.leave_gaps(FrameChain { head: 0, tail: 4 }), 4);
        assert_eq!(links.leave_gaps(FrameChain { head: 5, tail: 5 }), 1);
        assert_eq!(links.end_without_gaps(6), 2);
        assert_eq!(order(&links), [7]);
    }

    #[test]
    fn closed_gaps_keep_chains_and_order() {
        let mut links = Links::new(6);
        links.take_in(0, 6);
        links.hold(0, 3);
        links.hold(2, 1);
        links.append(0, 4, 1, 3);
        links.append(2, 5, 1, 1);
        let lone = |slot| FrameChain { head: slot, tail: slot };
        assert_eq!([1, 3].map(|slot| links.leave_gaps(lone(slot))), [1, 1]);
        let mut moved = [0; 6];
        assert_eq!(links.number(&mut moved), 4);
        assert_eq!(moved, [0, GAP, 1, GAP, 2, 3]);
        links.close_gaps(&moved);
        links.take_in(4, 6);
        assert_eq!((links.next(0), links.next(1)), (2, 3));
        assert_eq!(order(&links), [3, 1]);
    }
}
