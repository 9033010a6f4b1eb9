//! A lock-free stack of indices (after Treiber, 1986), without memory of its own to manage.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The indices 0..n, each on the stack at most once.
pub(super) struct IndexStack {
    /// The top index in the lower half, a count of changes in the upper.
    ///
    /// The count is what tells a top that was taken and given back from one that never moved: a
    /// thread that read `below` of the old one must not put it in place. It would have to sleep
    /// through a multiple of 2³² changes to be fooled.
    top: AtomicU64,
    /// For each index on the stack, the one below it.
    below: Box<[AtomicU32]>,
    len: AtomicUsize,
}

/// Below the lowest index.
const NONE: u32 = u32::MAX;

impl IndexStack {
    /// All indices below `count`, 0 on top.
    pub(super) fn full(count: u32) -> Self {
        let below = (1..=count).map(|next| if next == count { NONE } else { next });
        Self {
            top: AtomicU64::new(u64::from(if count == 0 { NONE } else { 0 })),
            below: below.map(AtomicU32::new).collect(),
            len: AtomicUsize::new(count as usize),
        }
    }

    /// Takes the top index off. What was done under it before it was pushed has happened.
    #[inline]
    pub(super) fn pop(&self) -> Option<u32> {
        let mut seen = self.top.load(Ordering::Acquire);
        loop {
            let index = seen as u32;
            if index == NONE {
                return None;
            }
            // May be out of date when another thread has popped it; the exchange then fails.
            let below = self.below[index as usize].load(Ordering::Relaxed);
            match self.replace(seen, below) {
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        self.len.fetch_sub(1, Ordering::Relaxed);
        Some(seen as u32)
    }

    /// Puts `index`, which the caller has popped, back on top.
    #[inline]
    pub(super) fn push(&self, index: u32) {
        // Counted before another thread can pop it, or the count could fall below zero.
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

    /// How many are on the stack.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Puts `index` in place of the top `seen`; what is there instead when it has changed.
    #[inline]
    fn replace(&self, seen: u64, index: u32) -> Result<(), u64> {
        let changes = (seen >> 32).wrapping_add(1) << 32;
        let next = changes | u64::from(index);
        // Release for the bytes and `below` written before a push; acquire for those of a pop.
        self.top.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }
}
