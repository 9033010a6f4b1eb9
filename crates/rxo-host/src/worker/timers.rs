//! The timers of all connections: a heap, with the position of each connection in the heap.
//!
//! A connection has at most one entry. If the deadline of a connection becomes earlier, its entry is moved. If
//! the deadline becomes later, the entry stays, and the connection is checked once without effect. ACKs
//! postpone timers very often, and such a check costs less than moving the entry.

use rxo_frame::Instant;

/// A heap of connections, ordered by deadline.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: Vec<(Instant, u32)>,
    /// The position of each connection in the heap; [`NO_INDEX`] if it has no entry.
    at: Vec<u32>,
}

impl Timers {
    /// Sets the deadline of the connection at index `place`; `None` removes the deadline.
    pub(crate) fn set(&mut self, place: u32, at: Option<Instant>) {
        let index = self.index(place);
        match (at, index) {
            (None, None) => {}
            (None, Some(index)) => self.remove(index),
            (Some(at), None) => {
                self.heap.push((at, place));
                self.rise(self.heap.len() - 1);
            }
            (Some(at), Some(index)) if at < self.heap[index].0 => {
                self.heap[index].0 = at;
                self.rise(index);
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// Returns the earliest deadline in the heap, which its connection may have postponed; `None` if the heap
    /// is empty.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Removes and returns a connection whose deadline may have passed at `now`; `None` if there is none.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<u32> {
        let (at, place) = *self.heap.first()?;
        if now < at {
            return None;
        }
        self.remove(0);
        Some(place)
    }

    /// Returns the number of connections with an entry.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    fn index(&mut self, place: u32) -> Option<usize> {
        let place = place as usize;
        if self.at.len() <= place {
            self.at.resize(place + 1, NO_INDEX);
        }
        let index = self.at[place];
        (index != NO_INDEX).then_some(index as usize)
    }

    fn remove(&mut self, index: usize) {
        let (_, place) = self.heap.swap_remove(index);
        self.at[place as usize] = NO_INDEX;
        if index < self.heap.len() {
            self.sink(index);
            self.rise(index);
        }
    }

    fn rise(&mut self, mut index: usize) {
        while index > 0 && self.heap[index].0 < self.heap[(index - 1) / 2].0 {
            let parent = (index - 1) / 2;
            self.heap.swap(index, parent);
            self.note(index);
            index = parent;
        }
        self.note(index);
    }

    fn sink(&mut self, mut index: usize) {
        loop {
            let children = [2 * index + 1, 2 * index + 2].into_iter();
            let least = children
                .filter(|child| *child < self.heap.len())
                .min_by_key(|child| self.heap[*child].0);
            let Some(least) = least.filter(|child| self.heap[*child].0 < self.heap[index].0) else {
                break;
            };
            self.heap.swap(index, least);
            self.note(index);
            index = least;
        }
        self.note(index);
    }

    fn note(&mut self, index: usize) {
        self.at[self.heap[index].1 as usize] = index as u32;
    }
}

const NO_INDEX: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn later_stays_and_earlier_moves() {
        let mut timers = Timers::default();
        timers.set(0, Some(at(50)));
        timers.set(0, Some(at(70)));
        assert_eq!(timers.next(), Some(at(50)));
        timers.set(0, Some(at(30)));
        assert_eq!(timers.next(), Some(at(30)));
        timers.set(0, None);
        assert_eq!((timers.next(), timers.len()), (None, 0));
    }

    proptest::proptest! {
        /// The naive oracle is a map from connections to deadlines.
        #[test]
        fn the_first_due_is_the_first(
            steps in proptest::collection::vec((0_u32..20, proptest::option::of(0_u64..50)), 0..200)
        ) {
            let (mut timers, mut oracle) = (Timers::default(), BTreeMap::new());
            for (place, time) in steps {
                timers.set(place, time.map(at));
                match time {
                    None => drop(oracle.remove(&place)),
                    Some(time) => {
                        let entry = oracle.entry(place).or_insert(at(time));
                        *entry = (*entry).min(at(time));
                    }
                }
                proptest::prop_assert_eq!(timers.next(), oracle.values().min().copied());
                proptest::prop_assert_eq!(timers.len(), oracle.len());
            }
            let mut last = Instant::ZERO;
            while let Some(place) = timers.take_due(at(50)) {
                let time = oracle.remove(&place).unwrap();
                proptest::prop_assert!(last <= time);
                last = time;
            }
            proptest::prop_assert!(oracle.is_empty());
        }
    }
}
