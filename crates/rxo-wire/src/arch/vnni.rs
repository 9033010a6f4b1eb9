//! Checksum sums with AVX-512 VNNI, which multiplies and adds in one instruction.
//!
//! Works like the module `avx512`, with two instructions instead of three per 64 bytes.
#![allow(unsafe_code, reason = "a call to a function that needs AVX-512 VNNI")]

use core::arch::x86_64::{
    __cpuid_count, __m512i, _mm512_add_epi32, _mm512_dpwssd_epi32, _mm512_reduce_add_epi32,
    _mm512_set1_epi16, _mm512_setzero_si512, _mm512_xor_si512,
};
use core::sync::atomic::{AtomicU8, Ordering};

use super::avx512::{Avx512, VECTOR_BYTES, load, load_rest, unflip};
use crate::checksum::Sum;

/// Proof that the processor has AVX-512 VNNI in addition to F and BW.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vnni(());

/// The number of bytes summed at once: 2¹⁵ words of absolute value at most 2¹⁵, so that sums stay within 2³⁰.
const BLOCK_BYTES: usize = 1 << 16;

/// The cached result of `CPUID`, which is executed once per process: a virtual machine traps it, which takes
/// tens of microseconds.
static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const PRESENT: u8 = 2;

impl Vnni {
    pub(crate) fn detect() -> Option<Self> {
        let answer = match ANSWER.load(Ordering::Relaxed) {
            UNKNOWN => ask(),
            answer => answer,
        };
        (answer == PRESENT).then_some(Self(()))
    }

    /// Returns the one's complement sum of `bytes`.
    #[inline]
    pub(crate) fn sum(self, bytes: &[u8]) -> Sum {
        // SAFETY: `self` exists only where `detect` found AVX-512 F, BW and VNNI.
        unsafe { sum(bytes) }
    }
}

/// Executes `CPUID` and caches the result. Two threads that do so at once get the same result.
#[cold]
fn ask() -> u8 {
    #[cfg(test)]
    tests::ASKED.fetch_add(1, Ordering::Relaxed);
    // AVX-512 was detected, so leaf 7 exists and the system saves the registers.
    #[allow(unused_unsafe, reason = "older compilers have it as unsafe")]
    // SAFETY: every processor with AVX-512 has the instruction.
    let ecx = || unsafe { __cpuid_count(7, 0) }.ecx;
    let is_there = Avx512::detect().is_some() && ecx() >> 11 & 1 == 1;
    let answer = if is_there { PRESENT } else { ABSENT };
    ANSWER.store(answer, Ordering::Relaxed);
    answer
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sum(bytes: &[u8]) -> Sum {
    let mut total = 0;
    for block in bytes.chunks(BLOCK_BYTES) {
        total += sum_block(block);
    }
    Sum::from_raw(total)
}

/// Returns the sum of a block, in four accumulators, so that an addition need not wait for the result of the
/// previous addition.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
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
    for (sum, bytes) in sums.iter_mut().zip(few) {
        *sum = add(*sum, load(bytes));
    }
    let [a, b, c, d] = sums;
    let d = add(d, load_rest(rest));
    let lanes = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
    unflip(_mm512_reduce_add_epi32(lanes), vectors.len() + 1)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[inline]
fn add(sum: __m512i, words: __m512i) -> __m512i {
    let flipped = _mm512_xor_si512(words, _mm512_set1_epi16(i16::MIN));
    _mm512_dpwssd_epi32(sum, flipped, _mm512_set1_epi16(1))
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};

    use crate::checksum::Summer;

    pub(super) static ASKED: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn the_processor_is_not_asked_for_every_packet() {
        let first = Summer::detect();
        let before = ASKED.load(Ordering::Relaxed);
        assert!(before >= 1);
        for _ in 0..1_000 {
            assert!(Summer::detect() == first);
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), before);
    }
}
