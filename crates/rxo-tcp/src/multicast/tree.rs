//! A tournament tree with two minima over all receivers: the send limit and the acknowledged position.
//!
//! Separate because the tree is the only part whose cost for each ACK grows with the number of
//! receivers. A change is propagated towards the root only as far as it changes a minimum: O(log n) at most.

use alloc::vec;
use alloc::vec::Vec;

/// The send limit and the acknowledged position of one receiver, or the minima of both below a node of the
/// tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberMinimum {
    /// The send limit: new data before this stream position may be sent.
    pub(super) limit: u64,
    /// The acknowledged position: everything before this stream position has arrived.
    pub(super) una: u64,
}

impl MemberMinimum {
    /// The value of a receiver that does not limit the group.
    pub(super) const NONE: Self = Self { limit: u64::MAX, una: u64::MAX };

    fn with(self, other: Self) -> Self {
        Self { limit: self.limit.min(other.limit), una: self.una.min(other.una) }
    }
}

/// The minima over all receivers. The root is node 1; the children of node n are 2n and 2n + 1.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<MemberMinimum>,
    leaves: usize,
}

impl Tree {
    /// Creates a tree for `receivers` receivers. Allocates 32 to 64 bytes for each receiver.
    pub(super) fn new(receivers: usize) -> Self {
        let leaves = receivers.next_power_of_two();
        Self { nodes: vec![MemberMinimum::NONE; 2 * leaves], leaves }
    }

    /// Sets the send limit and the acknowledged position of receiver `index`.
    pub(super) fn set(&mut self, index: usize, value: MemberMinimum) {
        let mut node = self.leaves + index;
        if node >= self.nodes.len() || self.nodes[node] == value {
            return;
        }
        self.nodes[node] = value;
        while node > 1 {
            let least = self.nodes[node].with(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == least {
                return;
            }
            self.nodes[node] = least;
        }
    }

    /// Returns the send limit and the acknowledged position of receiver `index`; [`MemberMinimum::NONE`] if
    /// there is no such receiver.
    pub(super) fn get(&self, index: usize) -> MemberMinimum {
        self.nodes.get(self.leaves + index).copied().unwrap_or(MemberMinimum::NONE)
    }

    /// Returns the smallest send limit and the smallest acknowledged position of all receivers;
    /// [`MemberMinimum::NONE`] without receivers.
    pub(super) fn least(&self) -> MemberMinimum {
        self.nodes[1]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_receiver_is_the_root() {
        let mut tree = Tree::new(1);
        assert_eq!(tree.least(), MemberMinimum::NONE);
        let value = MemberMinimum { limit: 3, una: 1 };
        tree.set(0, value);
        assert_eq!((tree.least(), tree.get(0), tree.get(9)), (value, value, MemberMinimum::NONE));
        tree.set(0, MemberMinimum::NONE);
        assert_eq!(tree.least(), MemberMinimum::NONE);
    }

    proptest! {
        /// The oracle computes the minima over all receivers anew.
        #[test]
        fn the_root_is_the_least(
            receivers in 1_usize..40,
            changes in prop::collection::vec((0_usize..40, 0_u64..50, 0_u64..50), 0..200),
        ) {
            let mut tree = Tree::new(receivers);
            let mut all = vec![MemberMinimum::NONE; receivers];
            for (index, limit, una) in changes {
                let value = if limit == 0 { MemberMinimum::NONE } else { MemberMinimum { limit, una } };
                let index = index % receivers;
                tree.set(index, value);
                all[index] = value;
                let least = all.iter().fold(MemberMinimum::NONE, |least, value| least.with(*value));
                prop_assert_eq!(tree.least(), least);
            }
        }
    }
}
