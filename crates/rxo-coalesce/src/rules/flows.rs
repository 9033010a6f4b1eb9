//! The table of the flows for which the generic tier keeps state, in the order in which they were last used.
//!
//! A flow is identified by its position in that order, 0 for the least recently used. All memory is allocated at
//! construction. A search examines all flows: this tier is for few flows, or for captures.

use alloc::vec::Vec;

use rxo_frame::{Duration, Instant};
use rxo_wire::{FlowKey, SeqNumber};

use super::{Flow, Run};

/// The state of one flow.
#[derive(Debug)]
pub(super) struct Known<M> {
    pub(super) key: FlowKey,
    pub(super) runs: Vec<Run>,
    pub(super) next_seq: Option<SeqNumber>,
    pub(super) delivered_at: Instant,
    pub(super) memory: M,
    /// The time at which the rules are called again; `None` for no time.
    pub(super) due: Option<Instant>,
    /// `true` if the flow holds segments beyond the end of a poll.
    pub(super) outlives_poll: bool,
}

impl<M: Default> Known<M> {
    fn new(most_runs: usize) -> Self {
        Self {
            key: FlowKey::NONE,
            // An insertion adds up to two runs before any is delivered.
            runs: Vec::with_capacity(most_runs + 3),
            next_seq: None,
            delivered_at: Instant::ZERO,
            memory: M::default(),
            due: None,
            outlives_poll: false,
        }
    }

    /// Forgets everything about the flow except its key. The flow must hold nothing.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        (self.next_seq, self.delivered_at, self.memory) = (None, now, M::default());
        (self.due, self.outlives_poll) = (None, false);
    }
}

impl<M> Known<M> {
    /// Records that bytes up to the sequence number `end` were delivered at `now`.
    pub(super) fn delivered(&mut self, end: SeqNumber, now: Instant) {
        if self.next_seq.is_none_or(|next| next.is_before(end)) {
            (self.next_seq, self.delivered_at) = (Some(end), now);
        }
    }

    /// Returns the time at which the engine must examine the flow; `None` if nothing is held, or only until the
    /// end of the poll.
    pub(super) fn deadline(&self, most_hold: Duration) -> Option<Instant> {
        let oldest = self.runs.iter().map(|run| run.oldest).min()?;
        let longest = self.outlives_poll.then_some(oldest + most_hold);
        self.due.into_iter().chain(longest).min()
    }

    /// Returns the state that rules receive, except for the last segment.
    fn view(&mut self) -> Flow<'_, M> {
        let Self { runs, next_seq, delivered_at, memory, .. } = self;
        Flow { runs, last: None, next_seq: *next_seq, delivered_at: *delivered_at, memory }
    }
}

/// The table of all flows for which the generic tier keeps state.
#[derive(Debug)]
pub(super) struct Flows<M> {
    all: Vec<Known<M>>,
    /// Indices into `all`: first the flows in the table, the least recently used first, then the free entries.
    order: Vec<u16>,
    known: usize,
}

impl<M: Default> Flows<M> {
    /// Creates a table for `most` flows. One more flow fits until the caller has evicted one of them.
    pub(super) fn new(most: usize, most_runs: usize) -> Self {
        let all = (0..=most).map(|_| Known::new(most_runs)).collect();
        Self { all, order: (0..=most as u16).collect(), known: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.known
    }

    pub(super) fn get(&self, at: usize) -> &Known<M> {
        &self.all[usize::from(self.order[at])]
    }

    pub(super) fn get_mut(&mut self, at: usize) -> &mut Known<M> {
        &mut self.all[usize::from(self.order[at])]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Known<M>> {
        self.order[..self.known].iter().map(|index| &self.all[usize::from(*index)])
    }

    pub(super) fn find(&self, key: &FlowKey) -> Option<usize> {
        self.iter().position(|flow| flow.key == *key)
    }

    /// Returns the position of the flow `key`. A flow that is not in the table is added with the time `now`;
    /// there must be a free entry.
    pub(super) fn find_or_begin(&mut self, key: FlowKey, now: Instant) -> usize {
        self.find(&key).unwrap_or_else(|| {
            let at = self.known.min(self.order.len() - 1);
            self.known = at + 1;
            let flow = self.get_mut(at);
            flow.key = key;
            flow.runs.clear();
            flow.begin_anew(now);
            at
        })
    }

    /// Makes the flow at the position `at` the most recently used, and returns its new position.
    pub(super) fn touch(&mut self, at: usize) -> usize {
        self.order[at..self.known].rotate_left(1);
        self.known - 1
    }

    /// Forgets the flow at the position `at`, which must hold nothing.
    pub(super) fn remove(&mut self, at: usize) {
        self.touch(at);
        self.known -= 1;
    }

    /// Returns the least recently used of the flows that hold something; `None` if there is none.
    pub(super) fn oldest_holding(&self) -> Option<usize> {
        self.iter().position(|flow| !flow.runs.is_empty())
    }

    /// Returns the least recently used flow of the lowest rank, other than the flow `but`; `None` if there is
    /// no other.
    pub(super) fn lowest(
        &mut self,
        but: &FlowKey,
        rank: impl Fn(&Flow<'_, M>) -> u8,
    ) -> Option<usize> {
        let mut lowest: Option<(u8, usize)> = None;
        for at in 0..self.known {
            let flow = self.get_mut(at);
            if flow.key != *but {
                let ranked = (rank(&flow.view()), at);
                lowest = Some(lowest.map_or(ranked, |lowest| lowest.min(ranked)));
            }
        }
        lowest.map(|(_, at)| at)
    }
}
