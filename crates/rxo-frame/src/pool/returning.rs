//! Buffers that are dropped together, on their way back to their pool.
//!
//! They are linked with plain stores, which no other thread sees before they are returned, all by one
//! atomic exchange. An exchange costs as much as ten such stores.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::stack::Chain;
use super::{PoolBuf, Shared, give_back};

/// Buffers of one pool, returned when this is dropped.
pub(super) struct Returning {
    /// Alive because it lacks the buffers of `chain`.
    shared: NonNull<Shared>,
    chain: Chain,
}

impl Returning {
    /// Begins with `first`; `None` if it is of no pool.
    #[inline]
    pub(super) fn of(first: PoolBuf) -> Option<Self> {
        if first.is_nowhere() {
            return None;
        }
        let first = ManuallyDrop::new(first);
        Some(Self { shared: first.shared, chain: Chain::of(first.index) })
    }

    /// Adds a buffer. One of another pool comes back, one of no pool is passed over.
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
        // SAFETY: the indices belonged to buffers that this took and did not drop.
        unsafe { give_back(self.shared, self.chain) };
    }
}
