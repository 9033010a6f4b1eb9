//! Buffers that are dropped together and return to their pool together.
//!
//! The buffers are linked with plain stores, which no other thread reads before one atomic exchange returns all
//! of them. An exchange costs as much as ten such stores.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::stack::Chain;
use super::{PoolBuf, Shared, release};

/// Buffers of one pool that are returned when this value is dropped.
pub(super) struct Returning {
    /// The shared state of the pool to which the buffers belong. The pointer is valid because the buffers of
    /// `chain` are not returned yet.
    shared: NonNull<Shared>,
    chain: Chain,
}

impl Returning {
    /// Begins a group of buffers that are returned together, with the buffer `first`. `None` if `first`
    /// belongs to no pool.
    #[inline]
    pub(super) fn of(first: PoolBuf) -> Option<Self> {
        if first.is_nowhere() {
            return None;
        }
        let first = ManuallyDrop::new(first);
        Some(Self { shared: first.shared, chain: Chain::of(first.index) })
    }

    /// Adds a buffer to those that are returned together. A buffer of another pool is handed back as `Some`;
    /// a buffer that belongs to no pool is ignored.
    #[inline]
    pub(super) fn add(&mut self, buffer: PoolBuf) -> Option<PoolBuf> {
        if buffer.shared != self.shared {
            return if buffer.is_nowhere() { None } else { Some(buffer) };
        }
        let buffer = ManuallyDrop::new(buffer);
        // SAFETY: alive because the buffer, and those of `chain`, have not returned.
        let shared = unsafe { self.shared.as_ref() };
        shared.free().add(&mut self.chain, buffer.index);
        None
    }
}

impl Drop for Returning {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the indices belonged to buffers that this value took and did not drop.
        unsafe { release(self.shared, self.chain) };
    }
}
