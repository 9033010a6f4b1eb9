//! Buffers that are dropped together, on their way back to their pool.
//!
//! They are linked with plain stores, which no other thread sees before they are returned, all by one
//! atomic exchange. An exchange costs as much as ten such stores.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::stack::Chain;
use super::{PoolBuf, Shared, give_back};

/// Collects buffers of one pool, and returns them when it is dropped.
#[derive(Default)]
pub(super) struct Returning {
    /// The pool, alive because it lacks the buffers of the chain.
    buffers: Option<(NonNull<Shared>, Chain)>,
}

impl Returning {
    /// Adds a buffer. One of another pool returns those collected so far.
    #[inline]
    pub(super) fn add(&mut self, buffer: PoolBuf) {
        let buffer = ManuallyDrop::new(buffer);
        match &mut self.buffers {
            Some((shared, chain)) if *shared == buffer.shared => {
                buffer.shared().free().add(chain, buffer.index);
            }
            _ => {
                self.end();
                self.buffers = Some((buffer.shared, Chain::of(buffer.index)));
            }
        }
    }

    #[inline]
    fn end(&mut self) {
        if let Some((shared, chain)) = self.buffers.take() {
            // SAFETY: the indices belonged to buffers that `add` took and did not drop.
            unsafe { give_back(shared, chain) };
        }
    }
}

impl Drop for Returning {
    #[inline]
    fn drop(&mut self) {
        self.end();
    }
}
