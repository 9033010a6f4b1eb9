//! A fixed number of large buffers for packets that the kernel hands over by copying: frames
//! read from a TAP, and frames too large for a ring's slot.
//!
//! It stands apart from the ring because both sources use it. Contract: all memory is taken at
//! construction (and touched only when used); a buffer has one owner at a time, and goes back on
//! [`Arena::give_back`]. For one thread.
#![allow(unsafe_code, reason = "buffers of one allocation are lent out one by one")]

use std::cell::RefCell;
use std::ptr::NonNull;

/// Room for the largest IP packet, its Ethernet header, two VLAN tags, and a `virtio_net_hdr`;
/// an odd number of cache lines, so that the first lines of buffers do not meet in one set.
pub(crate) const BUFFER_BYTES: usize = 1027 * 64;

/// The buffers.
#[derive(Debug)]
pub(crate) struct Arena {
    memory: NonNull<[u8]>,
    /// Those nobody has; the last given back is the first taken, as it is warm.
    free: RefCell<Vec<u32>>,
}

impl Arena {
    /// An arena of `buffers` buffers.
    pub(crate) fn new(buffers: u32) -> Self {
        let memory = vec![0_u8; buffers as usize * BUFFER_BYTES].into_boxed_slice();
        let memory = NonNull::from(Box::leak(memory));
        Self { memory, free: RefCell::new((0..buffers).rev().collect()) }
    }

    /// Takes a buffer; `None` when all are out.
    pub(crate) fn take(&self) -> Option<u32> {
        self.free.borrow_mut().pop()
    }

    /// Puts back a buffer that was taken and of which nobody holds the bytes any more.
    pub(crate) fn give_back(&self, buffer: u32) {
        self.free.borrow_mut().push(buffer);
    }

    /// Where a buffer begins. Whoever took it may use [`BUFFER_BYTES`] from there.
    pub(crate) fn start(&self, buffer: u32) -> NonNull<u8> {
        let at = buffer as usize * BUFFER_BYTES;
        assert!(at < self.memory.len(), "no such buffer");
        // SAFETY: `at` lies within the allocation, as just checked.
        unsafe { self.memory.cast::<u8>().add(at) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the memory came from a box in `new`, and whoever holds a buffer also holds the
        // arena, so nobody does.
        drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_buffers_than_there_are_and_the_last_back_is_the_first_out() {
        let arena = Arena::new(2);
        let (first, second) = (arena.take().unwrap(), arena.take().unwrap());
        assert_eq!(arena.take(), None);
        assert_ne!(arena.start(first), arena.start(second));
        arena.give_back(first);
        assert_eq!(arena.take(), Some(first));
    }
}
