//! Index of the held flows by the arrival of their first segment: which of them are due.
//!
//! Separate because a flow must not be examined in every poll in which it is held. The index is updated only when
//! it is asked: the frames taken since then name every new flow, so each flow is noted once, and a policy that
//! holds nothing beyond a poll pays nothing. The entry of a flow that has left stays until it is met. Bounded: when
//! entries are more than two for each flow, the index is made anew. Does not allocate after construction.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use rxo_frame::Instant;

use crate::work;

#[derive(Debug)]
pub(crate) struct Deadlines {
    /// When the first segment arrived, and the place; the earliest first.
    arrivals: BinaryHeap<Reverse<(Instant, u16)>>,
    /// The slots of the last frames and the places of the flows that are due, the least recently used last; empty
    /// between searches.
    due: Vec<(u32, u16)>,
    flows: usize,
}

impl Deadlines {
    /// An index of at most `flows` flows.
    pub(crate) fn new(flows: usize) -> Self {
        let (arrivals, due) = (BinaryHeap::with_capacity(3 * flows), Vec::with_capacity(4 * flows));
        Self { arrivals, due, flows }
    }

    /// Returns `true` if the free entries might not suffice for all flows. [`Deadlines::clear`] makes room.
    pub(crate) fn is_crowded(&self) -> bool {
        self.arrivals.len() > 2 * self.flows
    }

    /// Forgets all flows.
    pub(crate) fn clear(&mut self) {
        self.arrivals.clear();
    }

    /// Adds the flow at `place`, whose first segment arrived at `arrival`.
    pub(crate) fn note(&mut self, arrival: Instant, place: u16) {
        work::done(2);
        self.arrivals.push(Reverse((arrival, place)));
    }

    /// Adds flows to those that the next search finds, by the slots of their last frames and their places; at most as many
    /// as the index is for.
    pub(crate) fn add_due(&mut self, flows: impl Iterator<Item = (u32, u16)>) {
        self.due.extend(flows);
    }

    /// Finds the flows for which `is_due` is true of the arrival. `tail` gives the slot of the last frame of the flow
    /// at a place whose first segment arrived then; `None` if it has left. [`Deadlines::next_due`] gives them, the
    /// least recently used first. Returns the earliest arrival of the flows that are left.
    pub(crate) fn search(
        &mut self,
        is_due: impl Fn(Instant) -> bool,
        tail: impl Fn(Instant, u16) -> Option<u32>,
    ) -> Option<Instant> {
        let mut left = None;
        while let Some(Reverse((arrival, place))) = self.arrivals.peek().copied() {
            work::done(self.arrivals.len().ilog2() as usize);
            match tail(arrival, place) {
                Some(tail) if is_due(arrival) => self.due.push((tail, place)),
                Some(_) => {
                    left = Some(arrival);
                    break;
                }
                None => {}
            }
            self.arrivals.pop();
        }
        // Taken from the end. A flow is here twice if it was added, or one with the same arrival had its place before.
        self.due.sort_unstable_by(|one, other| other.cmp(one));
        self.due.dedup();
        left
    }

    /// Returns the place of the next flow that is due.
    pub(crate) fn next_due(&mut self) -> Option<u16> {
        self.due.pop().map(|(_, place)| place)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn due(deadlines: &mut Deadlines) -> Vec<u16> {
        core::iter::from_fn(|| deadlines.next_due()).collect()
    }

    #[test]
    fn flows_are_due_by_arrival_and_leave_in_order_of_use() {
        let mut deadlines = Deadlines::new(4);
        [(30, 0), (10, 1), (20, 2), (40, 3)]
            .iter()
            .for_each(|(nanos, place)| deadlines.note(at(*nanos), *place));
        let tails = [5, 9, 2, 7];
        let tail = |_, place| Some(tails[usize::from(place)]);
        let left = deadlines.search(|arrival| arrival <= at(30), tail);
        assert_eq!((left, due(&mut deadlines)), (Some(at(40)), [2, 0, 1].to_vec()));
    }

    #[test]
    fn a_flow_that_has_left_is_forgotten_when_it_is_met() {
        let mut deadlines = Deadlines::new(4);
        deadlines.note(at(1), 0);
        deadlines.note(at(2), 1);
        let left = deadlines.search(|_| false, |_, place| (place == 1).then_some(0));
        assert_eq!((left, due(&mut deadlines)), (Some(at(2)), Vec::new()));
        assert_eq!(deadlines.arrivals.len(), 1);
    }

    #[test]
    fn a_place_that_was_used_twice_at_one_time_is_due_once() {
        let mut deadlines = Deadlines::new(4);
        (0..3).for_each(|_| deadlines.note(at(1), 2));
        assert_eq!(deadlines.search(|_| true, |_, _| Some(8)), None);
        assert_eq!(due(&mut deadlines), [2]);
    }
}
