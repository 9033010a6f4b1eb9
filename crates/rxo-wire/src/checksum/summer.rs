//! Selects the fastest implementation of checksum sums for the processor.

use core::fmt;

use super::{Sum, portable};
use crate::arch::{avx2::Avx2, avx512::Avx512, neon::Neon};

/// An implementation that sums bytes, selected once and then kept. One byte long and `Copy`.
///
/// All implementations return the same sum and differ only in speed.
///
/// # Examples
/// ```
/// use rxo_wire::checksum::Summer;
///
/// let summer = Summer::detect();
/// assert_eq!(summer.sum(&[0x45, 0x00, 0x00, 0x28]).fold(), 0x4528);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Summer(Way);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Portable,
    Neon(Neon),
    Avx2(Avx2),
    Avx512(Avx512),
}

/// The length in bytes up to which the portable implementation is the fastest on every processor, because a vector
/// needs a final addition across its lanes.
const SHORT_BYTES: usize = 64;

impl Summer {
    /// Returns the fastest implementation that this processor supports. `CPUID` is executed once per process;
    /// later calls use the cached result.
    #[must_use]
    pub fn detect() -> Self {
        Self::available().last().unwrap_or(Self::portable())
    }

    /// Returns the implementation that works everywhere: 64-bit additions with carry.
    #[must_use]
    pub const fn portable() -> Self {
        Self(Way::Portable)
    }

    /// Iterates over all implementations that this processor supports: first [`Summer::portable`], last the
    /// fastest.
    pub fn available() -> impl Iterator<Item = Self> {
        [
            Some(Way::Portable),
            Neon::detect().map(Way::Neon),
            Avx2::detect().map(Way::Avx2),
            Avx512::detect().map(Way::Avx512),
        ]
        .into_iter()
        .flatten()
        .map(Self)
    }

    /// Returns the name of the implementation, for tables and command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Way::Portable => "portable",
            Way::Neon(_) => "neon",
            Way::Avx2(_) => "avx2",
            Way::Avx512(_) => "avx512-vnni",
        }
    }

    /// Returns the sum of `bytes`. An odd last byte counts as the high half of a word.
    #[inline]
    #[must_use]
    pub fn sum(self, bytes: &[u8]) -> Sum {
        if bytes.len() <= SHORT_BYTES {
            return Sum::of(bytes);
        }
        match self.0 {
            Way::Portable => Sum::from_raw(portable::sum(bytes)),
            Way::Neon(neon) => neon.sum(bytes),
            Way::Avx2(avx2) => avx2.sum(bytes),
            Way::Avx512(avx512) => avx512.sum(bytes),
        }
    }
}

impl Default for Summer {
    fn default() -> Self {
        Self::detect()
    }
}

impl fmt::Debug for Summer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
