//! Fair turns: which of several queues may send its next frame (deficit round robin; Shreedhar and Varghese, SIGCOMM 1995).
//!
//! This module is separate so that its fairness can be tested alone. No side effects: the costs of the first
//! frames go in, a queue comes out. Contract: of two queues that always have frames, neither gets ahead of the
//! other by more than a [`QUANTUM`] and the cost of one frame. A queue earns no credit while it has no frames.
//! A decision takes O(queues), and eight times as long for the largest frames.

/// The credit that a queue receives per turn, in units of cost (frame bytes plus `FRAME_COST_BYTES`): enough
/// for three full-size frames or eight of the smallest.
pub(super) const QUANTUM: u64 = 9 << 10;
/// The largest cost of a frame; a higher cost counts as this value.
const MOST_COST: u64 = 8 * QUANTUM;

#[derive(Clone, Debug)]
pub(super) struct FairTurns {
    /// The remaining credit of each queue.
    credits: Vec<u64>,
    /// The index of the queue that may send now.
    at: usize,
}

impl FairTurns {
    pub(super) fn new(queues: usize) -> Self {
        Self { credits: vec![0; queues], at: 0 }
    }

    /// Returns the queue that sends next, and takes the cost of its frame from its credit. `cost` returns the
    /// cost of a queue's first frame, or `None` if the queue has no frame or may not send it now. Returns
    /// `None` if no queue may send.
    pub(super) fn next(&mut self, mut cost: impl FnMut(usize) -> Option<u64>) -> Option<usize> {
        let mut idle = 0;
        while idle < self.credits.len() {
            let credit = &mut self.credits[self.at];
            match cost(self.at).map(|cost| cost.min(MOST_COST)) {
                Some(cost) if cost <= *credit => {
                    *credit -= cost;
                    return Some(self.at);
                }
                Some(_) => idle = 0,
                None => {
                    *credit = 0;
                    idle += 1;
                }
            }
            self.at = (self.at + 1) % self.credits.len();
            self.credits[self.at] += QUANTUM;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn costs() -> impl Strategy<Value = Vec<VecDeque<u64>>> {
        let frames = prop::collection::vec(1_u64..=MOST_COST, 400..500);
        prop::collection::vec(frames.prop_map(VecDeque::from), 2..8)
    }

    proptest! {
        #[test]
        fn queues_that_have_frames_get_as_much(mut queues in costs()) {
            let mut turns = FairTurns::new(queues.len());
            let mut sent = vec![0_u64; queues.len()];
            while queues.iter().all(|queue| !queue.is_empty()) {
                let n = turns.next(|n| queues[n].front().copied()).unwrap();
                sent[n] += queues[n].pop_front().unwrap();
                let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
                prop_assert!(most - least <= QUANTUM + MOST_COST, "{:?}", sent);
            }
        }

        /// A queue of one frame now and then is served at once: within one round of the others.
        #[test]
        fn nobody_waits_longer_than_a_round(others in 1_usize..20, cost in 1_u64..=MOST_COST) {
            let mut turns = FairTurns::new(others + 1);
            for _ in 0..100 {
                let mut paid = 0;
                loop {
                    let n = turns.next(|n| Some(if n == others { 60 } else { cost })).unwrap();
                    if n == others {
                        break;
                    }
                    paid += cost;
                }
                prop_assert!(paid <= (QUANTUM + MOST_COST) * others as u64, "{}", paid);
            }
        }

        #[test]
        fn whoever_may_send_is_found(is_ready in prop::collection::vec(any::<bool>(), 1..20), rounds in 1..50) {
            let mut turns = FairTurns::new(is_ready.len());
            for _ in 0..rounds {
                let found = turns.next(|n| is_ready[n].then_some(MOST_COST));
                prop_assert_eq!(found.is_some(), is_ready.contains(&true));
                prop_assert!(found.is_none_or(|n| is_ready[n]));
            }
        }
    }

    /// Frames of any size, against a queue that had none for long.
    #[test]
    fn idleness_earns_nothing() {
        let mut turns = FairTurns::new(2);
        (0..1_000).for_each(|_| assert_eq!(turns.next(|n| (n == 0).then_some(1_000)), Some(0)));
        let mut sent = [0_u64; 2];
        (0..1_000).for_each(|_| sent[turns.next(|_| Some(1_000)).unwrap()] += 1);
        assert!(sent[0].abs_diff(sent[1]) <= QUANTUM / 1_000 + 1, "{sent:?}");
    }

    #[test]
    fn without_queues_there_is_nothing_to_send() {
        assert_eq!(FairTurns::new(0).next(|_| Some(1)), None);
    }
}
