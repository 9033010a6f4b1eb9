//! Code for specific processors: SIMD sums and prefetch. The only unsafe code of this crate.
//!
//! Each module has a safe interface: it cannot run an instruction that the processor lacks, nor access a byte
//! outside the given slice. A SIMD implementation is represented by a token. Only the function `detect` creates
//! the token, and only if the processor has the instructions. So the token proves that they exist.
//!
//! On a target without the instructions, the token is a type without values, so that callers need no `cfg`.

mod prefetch;

pub use prefetch::{CACHE_LINE_BYTES, prefetch, prefetch_all};

// Targets without any vector registers (x86_64-unknown-none) have nothing to detect.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod avx2;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod avx512;

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
pub(crate) mod neon;

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) mod avx2 {
    pub(crate) use super::absent::Absent as Avx2;
}
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) mod avx512 {
    pub(crate) use super::absent::Absent as Avx512;
}
#[cfg(not(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")))]
pub(crate) mod neon {
    pub(crate) use super::absent::Absent as Neon;
}

mod absent {
    use crate::checksum::Sum;

    /// The token for an implementation that this target cannot have: it has no values.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Absent {}

    impl Absent {
        /// Always returns `None`, because this target lacks the vector instructions.
        pub(crate) const fn detect() -> Option<Self> {
            None
        }

        /// Never called, because no value of this type exists on this target.
        pub(crate) const fn sum(self, _bytes: &[u8]) -> Sum {
            match self {}
        }
    }
}
