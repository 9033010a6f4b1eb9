//! The memory of a ring of bytes, which grows with what is written.
//!
//! Separate because the rings of both directions use it.

use alloc::vec::Vec;

/// Reserves room for `bytes` in `ring`, which never has more than `most`. Doubles what there is, so that the
/// bytes are moved seldom.
#[inline]
pub(crate) fn reserve(ring: &mut Vec<u8>, bytes: usize, most: usize) {
    if bytes > ring.capacity() {
        let room = bytes.max(2 * ring.capacity()).max(LEAST_BYTES).min(most);
        ring.reserve_exact(room - ring.len());
    }
}

/// A usual request.
const LEAST_BYTES: usize = 256;
