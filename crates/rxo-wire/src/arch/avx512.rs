//! Checksum sums with AVX-512 BW and VNNI: 64 bytes per two instructions, and the remainder under a mask.
//!
//! Works like the module `avx2`, which explains why the top bit of each word is flipped. VNNI multiplies and adds in one
//! instruction.
#![allow(unsafe_code, reason = "vector loads, CPUID, and calls to functions that need AVX-512")]

use core::arch::x86_64::{
    __cpuid_count, __m512i, _mm512_add_epi32, _mm512_dpwssd_epi32, _mm512_loadu_si512,
    _mm512_maskz_loadu_epi8, _mm512_reduce_add_epi32, _mm512_set1_epi16, _mm512_setzero_si512,
    _mm512_xor_si512,
};
use core::sync::atomic::{AtomicU8, Ordering};

use crate::checksum::Sum;

// The sums use F, BW and VNNI. VBMI2 tells processors that keep their clock with 512-bit registers (Ice Lake, Zen 4 and
// later) from those that lower the clock of the whole core for them (Skylake, Cascade Lake): there the program around
// this library lost more than the sums gained.
cpufeatures::new!(fast_avx512, "avx512f", "avx512bw", "avx512vbmi2");

/// Proof that the processor has AVX-512 F, BW and VNNI, that the system saves their registers, and that using them
/// slows nothing else down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512(());

/// The number of bytes summed at once: 2¹⁵ words of absolute value at most 2¹⁵, so that sums stay within 2³⁰.
const BLOCK_BYTES: usize = 1 << 16;
const VECTOR_BYTES: usize = 64;

/// The cached result of `CPUID`, which is executed once per process: a virtual machine traps it, which takes
/// tens of microseconds.
static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const PRESENT: u8 = 2;

impl Avx512 {
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
    tests::ASKED.set(tests::ASKED.get() + 1);
    // AVX-512 was detected, so leaf 7 exists and the system saves the registers.
    #[allow(unused_unsafe, reason = "older compilers have it as unsafe")]
    // SAFETY: every processor with AVX-512 has the instruction.
    let ecx = || unsafe { __cpuid_count(7, 0) }.ecx;
    let is_there = fast_avx512::get() && ecx() >> 11 & 1 == 1;
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

/// Converts a sum of words with flipped top bits to the sum of the original words.
#[inline]
const fn unflip(signed: i32, vectors: usize) -> u64 {
    (signed as i64 + (vectors * VECTOR_BYTES / 2) as i64 * 0x8000) as u64
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn load(bytes: &[u8; VECTOR_BYTES]) -> __m512i {
    // SAFETY: the array is as long as the vector, and this load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Loads fewer than 64 bytes into a vector, followed by zeros.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn load_rest(bytes: &[u8]) -> __m512i {
    debug_assert!(bytes.len() < VECTOR_BYTES, "the mask has a bit for each byte");
    let mask = !(u64::MAX << (bytes.len() & (VECTOR_BYTES - 1)));
    // SAFETY: the mask lets only the slice's own bytes be read (at most all of them), the others
    // are not touched, and this load needs no alignment.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use std::is_x86_feature_detected as has;

    use super::Avx512;
    use crate::checksum::Summer;

    std::thread_local! {
        /// The number of times that this thread has executed `CPUID`. Each test has a thread.
        pub(super) static ASKED: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn the_processor_is_not_asked_for_every_packet() {
        let first = Summer::detect();
        let before = ASKED.get();
        for _ in 0..1_000 {
            assert!(Summer::detect() == first);
        }
        assert_eq!(ASKED.get(), before);
    }

    #[test]
    fn it_is_chosen_only_where_it_slows_nothing_down() {
        let is_fast = has!("avx512f") && has!("avx512bw") && has!("avx512vbmi2");
        assert_eq!(Avx512::detect().is_some(), is_fast && has!("avx512vnni"));
    }
}
