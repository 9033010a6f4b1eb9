//! A lock-free set of the indices of free buffers, for processors without 64-bit atomics: one bit per index.
//!
//! It has the same interface as [`stack`](super::stack), which needs 64 bits for a count that distinguishes an
//! unchanged top from one that was popped and pushed again. With 32 bits, this count would be too short to be
//! safe. A bit needs no count: the thread that clears it owns the index. Taking is O(n / 32) at worst; the
//! lowest free index is taken first.
//!
//! Next to the bits is a count of the taken indices, plus one while the set is open. The thread that
//! decrements it to zero frees the memory.

use core::sync::atomic::{AtomicU32, Ordering};

/// The atomic number of taken indices, plus one while the set is open.
pub(super) type Top = AtomicU32;

/// The set of the free indices among 0..n. It has the name of the lock-free stack that it replaces on targets
/// without 64-bit atomics. The set only borrows atomics, because a method that returned the last index may
/// still be running when another thread frees the pool.
#[derive(Clone, Copy)]
pub(super) struct IndexStack<'a> {
    /// The number of taken indices, plus one while the set is open.
    pub(super) top: &'a Top,
    /// One bit for each index, which is set if the index is free.
    pub(super) below: &'a [AtomicU32],
}

/// Taken indices that are being returned together. The bits of the added indices are already set, but the
/// count of taken indices does not reflect this yet.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    first: u32,
    added: u32,
}

impl Chain {
    /// Creates a chain of one index, which the caller has taken.
    #[inline]
    pub(super) const fn of(index: u32) -> Self {
        Self { first: index, added: 0 }
    }
}

/// A number that is never an index, because it exceeds every valid count of indices.
pub(super) const END: u32 = u32::MAX;

/// Returns the initial count of an open set that contains all its indices.
pub(super) const fn full_top(_count: u32) -> Top {
    AtomicU32::new(1)
}

/// Returns the bits of a set that contains all indices below `count`.
pub(super) fn full_below(count: u32) -> impl Iterator<Item = AtomicU32> {
    let bits = |left: u32| if left < 32 { (1 << left) - 1 } else { u32::MAX };
    (0..count.div_ceil(32)).map(move |word| AtomicU32::new(bits(count - word * 32)))
}

impl IndexStack<'_> {
    /// Takes the lowest index out of the set; `None` if the set is empty. Writes made before the index was returned are
    /// visible afterwards. The set must be open.
    pub(super) fn pop(self) -> Option<u32> {
        for (word, bits) in (0..).zip(self.below) {
            let mut seen = bits.load(Ordering::Relaxed);
            while seen != 0 {
                let bit = seen & seen.wrapping_neg();
                seen = bits.fetch_and(!bit, Ordering::Acquire);
                if seen & bit != 0 {
                    // The set is open, so the count is not zero, and nobody frees the memory.
                    self.top.fetch_add(1, Ordering::Relaxed);
                    return Some(word * 32 + bit.trailing_zeros());
                }
            }
        }
        None
    }

    /// Returns the indices of `chain` to the set. The result is `true` if the set is closed and these were the
    /// last missing indices. In this case all writes that other threads made before they returned indices are
    /// visible, and no other thread accesses the set any more.
    #[must_use = "the last one to push frees the memory"]
    pub(super) fn push(self, chain: Chain) -> bool {
        self.put(chain.first);
        let count = chain.added + 1;
        self.top.fetch_sub(count, Ordering::AcqRel) == count
    }

    /// Adds `index`, which the caller has taken, to the indices that `chain` returns.
    pub(super) fn add(self, chain: &mut Chain, index: u32) {
        chain.added += 1;
        self.put(index);
    }

    fn put(self, index: u32) {
        self.below[index as usize / 32].fetch_or(1 << (index % 32), Ordering::Release);
    }

    /// Closes the set, after which no thread may take indices. Returns `true` if all indices are in the set;
    /// otherwise the last [`IndexStack::push`] returns `true`.
    #[must_use = "if all indices are there, the caller frees the memory"]
    pub(super) fn close(self) -> bool {
        self.top.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns `true` if no index is in the set. Examines 32 indices at a time.
    pub(super) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the number of indices in the set. Examines 32 indices at a time; exact only while no other
    /// thread changes the set.
    pub(super) fn len(self) -> usize {
        self.below.iter().map(|bits| bits.load(Ordering::Acquire).count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::vec::Vec;

    use super::*;

    fn full(count: u32) -> (Top, Vec<AtomicU32>) {
        (full_top(count), full_below(count).collect())
    }

    #[test]
    fn every_index_is_taken_once_and_comes_back() {
        for count in [0, 1, 31, 32, 33, 70].into_iter().filter(|count| *count < END) {
            let (top, below) = full(count);
            let set = IndexStack { top: &top, below: &below };
            let taken: Vec<u32> = core::iter::from_fn(|| set.pop()).collect();
            assert_eq!((taken.clone(), set.is_empty()), ((0..count).collect(), true));
            for index in taken.iter().rev() {
                assert!(!set.push(Chain::of(*index)), "the set is open");
            }
            assert_eq!((set.len(), set.close()), (count as usize, true));
        }
    }

    #[test]
    fn the_last_chain_after_the_end_frees_the_memory() {
        let (top, below) = full(4);
        let set = IndexStack { top: &top, below: &below };
        let taken: Vec<u32> = core::iter::from_fn(|| set.pop()).collect();
        assert!(!set.close());
        let mut chain = Chain::of(taken[0]);
        set.add(&mut chain, taken[1]);
        set.add(&mut chain, taken[2]);
        assert!(!set.push(chain), "one is missing");
        assert!(set.push(Chain::of(taken[3])));
    }

    #[test]
    fn threads_never_own_the_same_index() {
        let (top, below) = full(40);
        let owners: Vec<AtomicU32> = (0..40).map(|_| AtomicU32::new(0)).collect();
        let set = IndexStack { top: &top, below: &below };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let Some(index) = set.pop() else { continue };
                        let owner = &owners[index as usize];
                        assert_eq!(owner.fetch_add(1, Ordering::Relaxed), 0, "{index}");
                        owner.fetch_sub(1, Ordering::Relaxed);
                        assert!(!set.push(Chain::of(index)));
                    }
                });
            }
        });
        assert_eq!((set.len(), set.close()), (40, true));
    }
}
