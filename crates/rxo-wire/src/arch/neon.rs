//! Checksum sums with NEON: 16 bytes per instruction, which adds neighbouring words into wider lanes.
//!
//! Every target for which this module is compiled has NEON, so nothing is detected at run time.
#![allow(unsafe_code, reason = "vector loads, and a call to a function that names NEON")]

use core::arch::aarch64::{
    uint16x8_t, vaddlvq_u32, vaddq_u32, vdupq_n_u32, vld1q_u8, vpadalq_u16, vreinterpretq_u16_u8,
};

use crate::checksum::Sum;

/// Proof that the processor has NEON, as every processor of these targets does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neon(());

/// The number of bytes summed at once: 2¹⁵ words below 2¹⁶, so that sums stay below 2³¹.
const BLOCK_BYTES: usize = 1 << 16;
const VECTOR_BYTES: usize = 16;

impl Neon {
    pub(crate) const fn detect() -> Option<Self> {
        Some(Self(()))
    }

    /// Returns the one's complement sum of `bytes`.
    #[inline]
    pub(crate) fn sum(self, bytes: &[u8]) -> Sum {
        // SAFETY: this module is compiled only for targets that have NEON.
        unsafe { sum(bytes) }
    }
}

#[target_feature(enable = "neon")]
fn sum(bytes: &[u8]) -> Sum {
    let (vectors, rest) = bytes.as_chunks::<VECTOR_BYTES>();
    let mut total = 0;
    for block in vectors.chunks(BLOCK_BYTES / VECTOR_BYTES) {
        total += sum_block(block);
    }
    Sum::from_raw(total) + Sum::of(rest)
}

/// Returns the sum of a block, in four accumulators, so that an addition need not wait for the result of the
/// previous addition.
#[target_feature(enable = "neon")]
#[inline]
fn sum_block(block: &[[u8; VECTOR_BYTES]]) -> u64 {
    let mut sums = [vdupq_n_u32(0); 4];
    let (fours, rest) = block.as_chunks::<4>();
    for four in fours {
        for (sum, bytes) in sums.iter_mut().zip(four) {
            *sum = vpadalq_u16(*sum, load(bytes));
        }
    }
    for (sum, bytes) in sums.iter_mut().zip(rest) {
        *sum = vpadalq_u16(*sum, load(bytes));
    }
    let [a, b, c, d] = sums;
    vaddlvq_u32(vaddq_u32(vaddq_u32(a, b), vaddq_u32(c, d)))
}

#[target_feature(enable = "neon")]
#[inline]
fn load(bytes: &[u8; VECTOR_BYTES]) -> uint16x8_t {
    // SAFETY: the array is as long as the vector, and this load needs no alignment.
    vreinterpretq_u16_u8(unsafe { vld1q_u8(bytes.as_ptr()) })
}
