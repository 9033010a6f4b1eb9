//! A lock-free stack of indices (after Treiber, 1986) that manages no memory.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The indices 0..n, each on the stack at most once.
pub(super) struct IndexStack {
    /// The top index in the lower half, a count of changes in the upper half.
    ///
    /// The count tells an unchanged top from one that was popped and pushed again. Without it, a
    /// thread that read `below` of the old top could install a stale value. To fool the count, a
    /// thread would have to sleep through a multiple of 2³² changes.
    top: AtomicU64,
    /// For each index on the stack, the one below it.
    below: Box<[AtomicU32]>,
    len: AtomicUsize,
}

/// The value below the lowest index.
const NONE: u32 = u32::MAX;

impl IndexStack {
    /// Makes a stack of all indices below `count`, with 0 on top.
    pub(super) fn full(count: u32) -> Self {
        let below = (1..=count).map(|next| if next == count { NONE } else { next });
        Self {
            top: AtomicU64::new(u64::from(if count == 0 { NONE } else { 0 })),
            below: below.map(AtomicU32::new).collect(),
            len: AtomicUsize::new(count as usize),
        }
    }

    /// Pops the top index. Writes made before it was pushed are visible afterwards.
    #[inline]
    pub(super) fn pop(&self) -> Option<u32> {
        let mut seen = self.top.load(Ordering::Acquire);
        loop {
            let index = seen as u32;
            if index == NONE {
                return None;
            }
            // May be stale if another thread has popped it. Then the exchange fails.
            let below = self.below[index as usize].load(Ordering::Relaxed);
            match self.replace(seen, below) {
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        self.len.fetch_sub(1, Ordering::Relaxed);
        Some(seen as u32)
    }

    /// Pushes `index`, which the caller has popped.
    #[inline]
    pub(super) fn push(&self, index: u32) {
        // Counted before another thread can pop it; otherwise the count could fall below zero.
        self.len.fetch_add(1, Ordering::Relaxed);
        let mut seen = self.top.load(Ordering::Relaxed);
        loop {
            self.below[index as usize].store(seen as u32, Ordering::Relaxed);
            match self.replace(seen, index) {
                Ok(()) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Number of indices on the stack.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Replaces the top `seen` by `index`. If the top has changed, returns the new one.
    #[inline]
    fn replace(&self, seen: u64, index: u32) -> Result<(), u64> {
        let changes = (seen >> 32).wrapping_add(1) << 32;
        let next = changes | u64::from(index);
        // Release for the bytes and `below` written before a push; acquire for those of a pop.
        self.top.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }
}
