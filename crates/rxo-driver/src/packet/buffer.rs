//! The bytes of a frame from a packet socket: a slot of the ring, lent without a copy, or, for a
//! frame too large for a slot, a buffer of the arena.
//!
//! Contract: dropping it gives the memory back, in any order, also after the source is gone.
#![allow(unsafe_code, reason = "shows bytes of memory shared with the kernel")]

use std::ptr::NonNull;
use std::rc::Rc;

use super::ring::RingMap;
use crate::arena::Arena;

/// The key's highest bit: set for a buffer of the arena, clear for a slot.
const IN_ARENA: u32 = 1 << 31;

/// The memory that buffers come from and go back to.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) ring: RingMap,
    pub(crate) arena: Arena,
}

/// A frame's bytes, lent by a packet source. Give it back soon: while the oldest slots of a lap
/// are held, the kernel cannot fill them, and in the end drops what arrives.
#[derive(Debug)]
pub struct PacketBuf {
    bytes: NonNull<u8>,
    len: u32,
    key: u32,
    home: Rc<Home>,
}

impl PacketBuf {
    /// Takes over a slot.
    ///
    /// # Safety
    /// `bytes` must be `len` bytes in `slot` of `home.ring`, which the caller has marked as lent.
    #[inline]
    pub(super) unsafe fn slot(home: Rc<Home>, slot: u32, bytes: NonNull<u8>, len: u32) -> Self {
        Self { bytes, len, key: slot, home }
    }

    /// Takes over a buffer of the arena.
    ///
    /// # Safety
    /// `bytes` must be `len` initialised bytes in `buffer` of `home.arena`, which the caller has
    /// taken.
    pub(super) unsafe fn copied(home: Rc<Home>, buffer: u32, bytes: NonNull<u8>, len: u32) -> Self {
        Self { bytes, len, key: buffer | IN_ARENA, home }
    }
}

impl AsRef<[u8]> for PacketBuf {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the constructors' callers promised `len` readable bytes, and neither the kernel
        // nor the source writes to them until this value gives them back.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len as usize) }
    }
}

impl Drop for PacketBuf {
    #[inline]
    fn drop(&mut self) {
        if self.key & IN_ARENA == 0 {
            self.home.ring.give_back(self.key);
        } else {
            self.home.arena.give_back(self.key & !IN_ARENA);
        }
    }
}
