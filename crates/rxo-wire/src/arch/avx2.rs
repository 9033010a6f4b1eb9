//! Checksum sums with AVX2: 32 bytes per instruction.
//!
//! The instruction that adds neighbouring words treats them as signed. So the top bit of each word is flipped,
//! which subtracts 0x8000 from the word. The difference is added back at the end. A block is so small that
//! neither a 32-bit lane nor the sum of all lanes can overflow.
#![allow(unsafe_code, reason = "vector loads, and calls to functions that need AVX2")]

use core::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_shuffle_epi32, _mm256_add_epi32,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_set1_epi16, _mm256_setzero_si256, _mm256_xor_si256,
};

use crate::checksum::Sum;

cpufeatures::new!(avx2, "avx2");

/// Proof that the processor has AVX2 and that the system saves its registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

/// The number of bytes summed at once: 2¹⁵ words of absolute value at most 2¹⁵, so that sums stay within 2³⁰.
const BLOCK_BYTES: usize = 1 << 16;
const VECTOR_BYTES: usize = 32;

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        avx2::get().then_some(Self(()))
    }

    /// Returns the one's complement sum of `bytes`.
    #[inline]
    pub(crate) fn sum(self, bytes: &[u8]) -> Sum {
        // SAFETY: `self` exists only where `detect` found AVX2.
        unsafe { sum(bytes) }
    }
}

#[target_feature(enable = "avx2")]
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
#[target_feature(enable = "avx2")]
#[inline]
fn sum_block(block: &[[u8; VECTOR_BYTES]]) -> u64 {
    let flip = _mm256_set1_epi16(i16::MIN);
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_si256(); 4];
    let (fours, rest) = block.as_chunks::<4>();
    for four in fours {
        for (sum, bytes) in sums.iter_mut().zip(four) {
            let pairs = _mm256_madd_epi16(_mm256_xor_si256(load(bytes), flip), ones);
            *sum = _mm256_add_epi32(*sum, pairs);
        }
    }
    for (sum, bytes) in sums.iter_mut().zip(rest) {
        let pairs = _mm256_madd_epi16(_mm256_xor_si256(load(bytes), flip), ones);
        *sum = _mm256_add_epi32(*sum, pairs);
    }
    let [a, b, c, d] = sums;
    let signed = across(_mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d)));
    let flipped = (block.len() * VECTOR_BYTES / 2) as i64 * 0x8000;
    (i64::from(signed) + flipped) as u64
}

/// Returns the sum of the eight 32-bit lanes of a vector.
#[target_feature(enable = "avx2")]
#[inline]
fn across(lanes: __m256i) -> i32 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes));
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8; VECTOR_BYTES]) -> __m256i {
    // SAFETY: the array is as long as the vector, and this load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}
