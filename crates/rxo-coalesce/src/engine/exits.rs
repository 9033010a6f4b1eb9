//! Exits: index of the flows that adaptive hold keeps. For each of the next polls, it lists the flows that are
//! flushed at the end of the poll unless they gain a segment before.
//!
//! With this index, a poll does not examine every held flow. There is one list for each of the next polls. A
//! flow index is in at most one list, and moves to a later list when its flow gains a segment. The entry of a
//! flushed flow remains until its index is used again or its poll ends. All operations are O(1). Does not
//! allocate after construction.

use crate::lists::Lists;

/// The number of lists. A flow that gains no segment is flushed after fewer polls, because each poll halves
/// its share.
pub(super) const TURNS: u32 = 8;

/// The flow indices in the list of each poll, by poll number modulo [`TURNS`].
#[derive(Debug, Default)]
pub(super) struct Exits(Lists);

impl Exits {
    /// Creates an empty index for `flows` flow indices.
    pub(super) fn new(flows: usize) -> Self {
        Self(Lists::new(TURNS as usize, flows))
    }

    /// Records that `flow` is to be flushed at the end of poll number `poll`. Replaces an earlier record of the
    /// flow. `poll` must be one of the next `TURNS - 1`.
    #[inline]
    pub(super) fn note(&mut self, poll: u32, flow: u16) {
        self.0.put((poll % TURNS) as u16, flow);
    }

    /// Removes and returns a flow index from the list of poll number `poll`; `None` if the list is empty.
    #[inline]
    pub(super) fn take(&mut self, poll: u32) -> Option<u16> {
        self.0.first((poll % TURNS) as u16).inspect(|flow| self.0.remove(*flow))
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn all(exits: &mut Exits, poll: u32) -> Vec<u16> {
        let mut all: Vec<_> = core::iter::from_fn(|| exits.take(poll)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_flow_leaves_once_at_its_last_poll() {
        let mut exits = Exits::new(10);
        for (poll, flow) in [(3, 1), (3, 2), (3, 3), (4, 4), (3, 5), (4, 2), (3, 5), (5, 3)] {
            exits.note(poll, flow);
        }
        assert_eq!(
            [3, 4, 5, 6].map(|poll| all(&mut exits, poll)),
            [[1, 5].to_vec(), [2, 4].to_vec(), [3].to_vec(), Vec::new(),]
        );
        exits.note(11, 1);
        assert_eq!(all(&mut exits, 3), [1], "eight polls later");
    }

    /// Compares 10,000 random operations with a simple model.
    #[test]
    fn it_is_as_a_map_from_flows_to_polls() {
        let (mut exits, mut model, mut random) = (Exits::new(16), [None; 16], 1_u32);
        for step in 0..10_000_u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (flow, turn) = ((random >> 28) as u16, random >> 8 & 7);
            if step % 20 == 0 {
                let expected: Vec<_> =
                    (0..16).filter(|flow| model[usize::from(*flow)] == Some(turn)).collect();
                assert_eq!(all(&mut exits, turn), expected);
                model.iter_mut().filter(|one| **one == Some(turn)).for_each(|one| *one = None);
            } else {
                exits.note(turn, flow);
                model[usize::from(flow)] = Some(turn);
            }
        }
    }
}
