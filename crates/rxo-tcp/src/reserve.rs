//! Growth of the memory of a ring of bytes.
//!
//! Separate because the rings of both directions, sending and receiving, use this code.

use alloc::vec::Vec;

/// Reserves space for `bytes` bytes in `ring`, whose capacity never exceeds `most` bytes. Doubles the
/// capacity, so that the bytes are rarely moved.
#[inline]
pub(crate) fn reserve(ring: &mut Vec<u8>, bytes: usize, most: usize) {
    if bytes > ring.capacity() {
        let room = bytes.max(2 * ring.capacity()).max(LEAST_BYTES).min(most);
        ring.reserve_exact(room - ring.len());
    }
}

/// The smallest allocation in bytes, enough for a typical request of a client.
const LEAST_BYTES: usize = 256;
