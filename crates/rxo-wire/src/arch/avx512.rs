//! Checksum sums with AVX-512 BW: 64 bytes per instruction, and the remainder under a mask.
//!
//! Works like the module `avx2`, which explains why the top bit of each word is flipped.
#![allow(unsafe_code, reason = "vector loads, and calls to functions that need AVX-512")]

use core::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_madd_epi16, _mm512_maskz_loadu_epi8,
    _mm512_reduce_add_epi32, _mm512_set1_epi16, _mm512_setzero_si512, _mm512_xor_si512,
};

use crate::checksum::Sum;

cpufeatures::new!(avx512, "avx512f", "avx512bw");

/// Proof that the processor has AVX-512 F and BW and that the system saves their registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512(());

/// The number of bytes summed at once: 2¹⁵ words of absolute value at most 2¹⁵, so that sums stay within 2³⁰.
const BLOCK_BYTES: usize = 1 << 16;
pub(super) const VECTOR_BYTES: usize = 64;

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        avx512::get().then_some(Self(()))
    }

    /// Returns the one's complement sum of `bytes`.
    #[inline]
    pub(crate) fn sum(self, bytes: &[u8]) -> Sum {
        // SAFETY: `self` exists only where `detect` found AVX-512 F and BW.
        unsafe { sum(bytes) }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn sum(bytes: &[u8]) -> Sum {
    let mut total = 0;
    for block in bytes.chunks(BLOCK_BYTES) {
        total += sum_block(block);
    }
    Sum::from_raw(total)
}

/// Returns the sum of a block, in four accumulators, so that an addition need not wait for the result of the
/// previous addition.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn sum_block(block: &[u8]) -> u64 {
    let mut sums = [_mm512_setzero_si512(); 4];
    let (vectors, rest) = block.as_chunks::<VECTOR_BYTES>();
    let (fours, few) = vectors.as_chunks::<4>();
    for four in fours {
        for (sum, bytes) in sums.iter_mut().zip(four) {
            *sum = add(*sum, load(bytes));
        }
    }
    let [mut a, b, c, mut d] = sums;
    for bytes in few {
        a = add(a, load(bytes));
    }
    d = add(d, load_rest(rest));
    let lanes = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
    unflip(_mm512_reduce_add_epi32(lanes), vectors.len() + 1)
}

/// Converts a sum of words with flipped top bits to the sum of the original words.
#[inline]
pub(super) const fn unflip(signed: i32, vectors: usize) -> u64 {
    (signed as i64 + (vectors * VECTOR_BYTES / 2) as i64 * 0x8000) as u64
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn add(sum: __m512i, words: __m512i) -> __m512i {
    let flipped = _mm512_xor_si512(words, _mm512_set1_epi16(i16::MIN));
    _mm512_add_epi32(sum, _mm512_madd_epi16(flipped, _mm512_set1_epi16(1)))
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn load(bytes: &[u8; VECTOR_BYTES]) -> __m512i {
    // SAFETY: the array is as long as the vector, and this load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Loads fewer than 64 bytes into a vector, followed by zeros.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(super) fn load_rest(bytes: &[u8]) -> __m512i {
    debug_assert!(bytes.len() < VECTOR_BYTES, "the mask has a bit for each byte");
    let mask = !(u64::MAX << (bytes.len() & (VECTOR_BYTES - 1)));
    // SAFETY: the mask lets only the slice's own bytes be read (at most all of them), the others
    // are not touched, and this load needs no alignment.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}
