//! What the processor does better when asked by name. The only unsafe code of this crate.
//!
//! Each leaf module has a safe face: whoever calls it can ask for nothing that the processor at
//! hand cannot do, and for no byte outside the slice given. A way of summing is a token that only
//! its `detect` makes, and only where its instructions exist: having one is the proof.
//!
//! On a target without the instructions the token is a type without values, so that nobody above
//! has to ask which target it is.

mod prefetch;

pub use prefetch::{CACHE_LINE_BYTES, prefetch, prefetch_all};

// Where the target has no vector registers at all (x86_64-unknown-none), asking is no use.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod avx2;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod avx512;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod vnni;

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
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) mod vnni {
    pub(crate) use super::absent::Absent as Vnni;
}
#[cfg(not(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")))]
pub(crate) mod neon {
    pub(crate) use super::absent::Absent as Neon;
}

mod absent {
    use crate::checksum::Sum;

    /// A way of summing that this target cannot have: there is no value of it.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Absent {}

    impl Absent {
        /// Never.
        pub(crate) const fn detect() -> Option<Self> {
            None
        }

        /// Never called.
        pub(crate) const fn sum(self, _bytes: &[u8]) -> Sum {
            match self {}
        }
    }
}
