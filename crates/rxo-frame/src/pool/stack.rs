//! A lock-free stack of the indices of free buffers (after Treiber, 1986) that manages no memory.
//!
//! Separate from the pool because it is safe code: the pool owns the atomics and defines the meaning of an
//! index. A change of the stack is one atomic exchange of `top`. After [`IndexStack::close`], the same
//! exchange decides which thread returned the last index.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The atomic word with the top index of the stack; see [`IndexStack::top`].
pub(super) type Top = AtomicU64;

/// The stack of the free indices among 0..n, each of which is on it at most once.
///
/// The stack only borrows atomics. A method that returned the last index may still be running when another
/// thread frees these atomics, because the method accesses nothing after its last exchange.
#[derive(Clone, Copy)]
pub(super) struct IndexStack<'a> {
    /// While the stack is open: the top index in the lower half, a count of changes in the upper half. After
    /// it is closed: [`CLOSED`], and in the upper half the number of indices not yet returned.
    ///
    /// The count distinguishes an unchanged top from one that was popped and pushed again. Without it, a
    /// thread that read `below` of the old top could install a stale value. The count fails only if a thread
    /// sleeps during an exact multiple of 2³² changes.
    pub(super) top: &'a Top,
    /// For each index on the stack, the index below it.
    pub(super) below: &'a [AtomicU32],
}

/// Popped indices that are being returned, linked as on the stack, so that one exchange pushes all of them.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    top: u32,
    bottom: u32,
}

impl Chain {
    /// Creates a chain of one index, which the caller has popped.
    #[inline]
    pub(super) const fn of(index: u32) -> Self {
        Self { top: index, bottom: index }
    }
}

/// A number that exceeds every valid count of indices, so that [`NONE`] and [`CLOSED`] are never indices.
pub(super) const END: u32 = u32::MAX;
/// The value that means "no index", below the lowest index on the stack.
const NONE: u32 = u32::MAX;
/// The value of the top index that marks a closed stack.
const CLOSED: u32 = u32::MAX - 1;

/// Returns the initial `top` of a stack that contains all indices below `count`, with 0 on top.
pub(super) const fn full_top(count: u32) -> AtomicU64 {
    AtomicU64::new(if count == 0 { NONE as u64 } else { 0 })
}

/// Returns the initial links of a stack that contains all indices below `count`, with 0 on top: for each
/// index, the index below it.
pub(super) fn full_below(count: u32) -> impl Iterator<Item = AtomicU32> {
    (1..=count).map(move |next| AtomicU32::new(if next == count { NONE } else { next }))
}

impl IndexStack<'_> {
    /// Pops the top index; `None` if the stack is empty. Writes made before the index was pushed are visible
    /// afterwards.
    ///
    /// The stack must not be closed.
    #[inline]
    pub(super) fn pop(self) -> Option<u32> {
        let mut seen = self.top.load(Ordering::Acquire);
        loop {
            let index = seen as u32;
            if index == NONE {
                return None;
            }
            // May be stale if another thread popped the index. Then the exchange fails.
            let below = self.below[index as usize].load(Ordering::Relaxed);
            match self.replace(seen, below) {
                Ok(()) => return Some(index),
                Err(now) => seen = now,
            }
        }
    }

    /// Pushes the indices of `chain`. Returns `true` if the stack is closed and these were the last missing
    /// indices. In this case all writes that other threads made before their pushes are visible, and no other
    /// thread accesses the stack any more.
    #[inline]
    #[must_use = "the last one to push frees the memory"]
    pub(super) fn push(self, chain: Chain) -> bool {
        let mut seen = self.top.load(Ordering::Relaxed);
        while seen as u32 != CLOSED {
            self.link(chain.bottom, seen as u32);
            match self.replace(seen, chain.top) {
                Ok(()) => return false,
                Err(now) => seen = now,
            }
        }
        self.count_down(chain)
    }

    /// Adds `index`, which the caller has popped, on top of `chain`.
    #[inline]
    pub(super) fn add(self, chain: &mut Chain, index: u32) {
        self.link(index, chain.top);
        chain.top = index;
    }

    /// Counts the indices of `chain` as returned to a closed stack. Returns `true` if they were the last
    /// missing ones.
    #[cold]
    fn count_down(self, chain: Chain) -> bool {
        let mut index = chain.top;
        let mut indices = 1;
        while index != chain.bottom {
            index = self.below[index as usize].load(Ordering::Relaxed);
            indices += 1;
        }
        let before = self.top.fetch_sub(indices << 32, Ordering::AcqRel);
        before >> 32 == indices
    }

    #[inline]
    fn link(self, index: u32, below: u32) {
        self.below[index as usize].store(below, Ordering::Relaxed);
    }

    /// Closes the stack, after which no thread may pop indices. Returns `true` if all indices are on the stack;
    /// otherwise the last [`IndexStack::push`] returns `true`.
    #[must_use = "if all indices are there, the caller frees the memory"]
    pub(super) fn close(self) -> bool {
        let mut seen = self.top.load(Ordering::Acquire);
        loop {
            // Exact if `top` has not changed since: without pops, everything below it stays the same.
            let missing = self.below.len() - self.depth(seen as u32);
            let closed = (missing as u64) << 32 | u64::from(CLOSED);
            let exchange =
                self.top.compare_exchange(seen, closed, Ordering::AcqRel, Ordering::Acquire);
            match exchange {
                Ok(_) => return missing == 0,
                Err(now) => seen = now,
            }
        }
    }

    /// Returns `true` if no index is on the stack.
    pub(super) fn is_empty(self) -> bool {
        self.top.load(Ordering::Relaxed) as u32 == NONE
    }

    /// Returns the number of indices on the stack, at a cost proportional to this number. The result is exact
    /// only while no other thread changes the stack.
    pub(super) fn len(self) -> usize {
        self.depth(self.top.load(Ordering::Acquire) as u32)
    }

    /// Returns the number of indices on the stack from `index` down. Terminates even if other threads change
    /// the stack at the same time.
    fn depth(self, index: u32) -> usize {
        let below = |index: &u32| Some(self.below.get(*index as usize)?.load(Ordering::Relaxed));
        let chain = core::iter::successors(Some(index), below);
        chain.take(self.below.len()).take_while(|index| *index != NONE).count()
    }

    /// Replaces the value `seen` of the top, with `index` as the new top index. If the top has changed,
    /// returns its current value as the error.
    #[inline]
    fn replace(self, seen: u64, index: u32) -> Result<(), u64> {
        let changes = (seen >> 32).wrapping_add(1) << 32;
        let next = changes | u64::from(index);
        // Release for the bytes and `below` written before a push; acquire for those read after a pop.
        self.top.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }
}
