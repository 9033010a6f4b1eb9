//! Index of the held flows by the arrival time of their first segment; finds the flows whose hold time has
//! expired.
//!
//! With this index, a poll does not examine every held flow. The index is updated only when it is searched. The
//! update examines the frames received since the last search, among which is the first frame of every new flow.
//! So each flow is added once, and the index costs nothing under a policy that holds nothing beyond a poll. The
//! entry of a flow that was flushed remains until a search reaches it. Bounded: if there are more than two
//! entries per flow, the index is rebuilt. Does not allocate after construction.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use rxo_frame::Instant;

use crate::work;

#[derive(Debug)]
pub(crate) struct Deadlines {
    /// The arrival time of each flow's first segment, with the flow's index; the earliest first.
    arrivals: BinaryHeap<Reverse<(Instant, u16)>>,
    /// The flows found by the last search: the slot of each flow's last frame and the flow's index, the least recently
    /// used last. Empty between searches.
    due: Vec<(u32, u16)>,
    flows: usize,
}

impl Deadlines {
    /// Creates an empty index for at most `flows` flows.
    pub(crate) fn new(flows: usize) -> Self {
        // At most `2 * flows` entries precede an update, which adds at most `flows`; `add_due` adds `flows`
        // more.
        let (arrivals, due) = (BinaryHeap::with_capacity(3 * flows), Vec::with_capacity(4 * flows));
        Self { arrivals, due, flows }
    }

    /// Returns `true` if the index has more than two entries per flow; the caller must then call
    /// [`Deadlines::clear`] and add the held flows again.
    pub(crate) fn needs_compaction(&self) -> bool {
        self.arrivals.len() > 2 * self.flows
    }

    /// Removes all entries from the index.
    pub(crate) fn clear(&mut self) {
        self.arrivals.clear();
    }

    /// Adds `flow`, whose first segment arrived at `arrival`.
    pub(crate) fn note(&mut self, arrival: Instant, flow: u16) {
        work::done(2);
        self.arrivals.push(Reverse((arrival, flow)));
    }

    /// Adds flows to the result of the next search. Each flow is given as the slot of its last frame, and its
    /// index. `flows` must not have more elements than the number of flows that the index was created for.
    pub(crate) fn add_due(&mut self, flows: impl Iterator<Item = (u32, u16)>) {
        self.due.extend(flows);
    }

    /// Finds the flows whose arrival time satisfies `is_due`. `tail` gets an arrival time and an index, and
    /// returns the slot of the flow's last frame, or `None` if the flow that arrived at that time was
    /// flushed. [`Deadlines::next_due`] returns the flows found. Returns the earliest arrival time of the
    /// flows that are not due.
    pub(crate) fn search(
        &mut self,
        is_due: impl Fn(Instant) -> bool,
        tail: impl Fn(Instant, u16) -> Option<u32>,
    ) -> Option<Instant> {
        let mut left = None;
        while let Some(Reverse((arrival, flow))) = self.arrivals.peek().copied() {
            work::done(self.arrivals.len().ilog2() as usize);
            match tail(arrival, flow) {
                Some(tail) if is_due(arrival) => self.due.push((tail, flow)),
                Some(_) => {
                    left = Some(arrival);
                    break;
                }
                None => {}
            }
            self.arrivals.pop();
        }
        // `next_due` pops from the end. A flow may occur twice: once added and once found, or because its
        // index was used twice at the same time.
        self.due.sort_unstable_by(|one, other| other.cmp(one));
        self.due.dedup();
        left
    }

    /// Returns the index of the next flow that the search has found, the least recently used first; `None` after the
    /// last.
    pub(crate) fn next_due(&mut self) -> Option<u16> {
        self.due.pop().map(|(_, flow)| flow)
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
            .for_each(|(nanos, flow)| deadlines.note(at(*nanos), *flow));
        let tails = [5, 9, 2, 7];
        let tail = |_, flow| Some(tails[usize::from(flow)]);
        let left = deadlines.search(|arrival| arrival <= at(30), tail);
        assert_eq!((left, due(&mut deadlines)), (Some(at(40)), [2, 0, 1].to_vec()));
    }

    #[test]
    fn a_flow_that_has_left_is_forgotten_when_it_is_met() {
        let mut deadlines = Deadlines::new(4);
        deadlines.note(at(1), 0);
        deadlines.note(at(2), 1);
        let left = deadlines.search(|_| false, |_, flow| (flow == 1).then_some(0));
        assert_eq!((left, due(&mut deadlines)), (Some(at(2)), Vec::new()));
        assert_eq!(deadlines.arrivals.len(), 1);
    }

    #[test]
    fn an_index_that_was_used_twice_at_one_time_is_due_once() {
        let mut deadlines = Deadlines::new(4);
        (0..3).for_each(|_| deadlines.note(at(1), 2));
        assert_eq!(deadlines.search(|_| true, |_, _| Some(8)), None);
        assert_eq!(due(&mut deadlines), [2]);
    }
}
