//! A one's complement sum in the making.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use super::portable;

/// A one's complement sum of 16-bit words, not yet folded.
///
/// Held in 64 bits, in the byte order of the machine: the sum does not depend on it (RFC 1071,
/// section 2 (B)), and so no word is swapped until the end. The carry out of 64 bits comes back in
/// at the bottom, so nothing overflows however much is added.
///
/// One's complement has two zeros. A `Sum` of bytes is the "positive" one, which folds to 0, only
/// when every byte is 0; whatever has a pseudo-header in it never is.
#[derive(Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Self = Self(0);

    /// The sum of `bytes`, an odd last one taken as the high half of a word.
    ///
    /// For headers; [`super::Summer::sum`] is faster from some 64 bytes on.
    #[inline]
    #[must_use]
    pub const fn of(bytes: &[u8]) -> Self {
        Self(portable::sum_short(bytes))
    }

    /// One word.
    #[inline]
    #[must_use]
    pub const fn word(word: u16) -> Self {
        Self(word.to_be() as u64)
    }

    /// A 32-bit field.
    #[inline]
    #[must_use]
    pub const fn long(field: u32) -> Self {
        Self(field.to_be() as u64)
    }

    /// Several 32-bit fields; cheaper than one after the other, because nothing has to be carried.
    #[inline]
    #[must_use]
    pub const fn longs<const N: usize>(fields: [u32; N]) -> Self {
        // 2³² fields would be needed for a carry out of 64 bits.
        let (mut total, mut index) = (0, 0);
        while index < N {
            total += fields[index].to_be() as u64;
            index += 1;
        }
        Self(total)
    }

    /// The sum of what stood in memory as machine words that add up to `native`.
    #[inline]
    pub(crate) const fn from_raw(native: u64) -> Self {
        Self(native)
    }

    /// This sum and `other`.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let (sum, carry) = self.0.overflowing_add(other.0);
        Self(sum + carry as u64)
    }

    /// What is left of this sum without `other`, which must be part of it.
    ///
    /// When nothing is left, that is the "negative" zero: it folds to 0xffff.
    #[inline]
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        self.plus(Self(!other.0))
    }

    /// The sum of the same bytes, each in the other half of its word.
    #[inline]
    #[must_use]
    pub const fn swapped(self) -> Self {
        // A rotation by 8 bits multiplies by 2⁸ modulo 2⁶⁴ - 1, of which 2¹⁶ - 1 is a factor.
        Self(self.0.rotate_left(8))
    }

    /// The sum of the same bytes when they stand at `offset` of a larger whole: at an odd offset
    /// they are swapped (RFC 1071, section 2 (B)).
    #[inline]
    #[must_use]
    pub const fn at(self, offset: usize) -> Self {
        if offset & 1 == 0 { self } else { self.swapped() }
    }

    /// The sum in 16 bits. 0 and 0xffff are the same number; the first comes only from bytes that
    /// are all 0.
    #[inline]
    #[must_use]
    pub const fn fold(self) -> u16 {
        // Adding the halves crosswise leaves their sum, carry included, in the upper half.
        let folded = self.0.wrapping_add(self.0.rotate_left(32));
        let long = (folded >> 32) as u32;
        let folded = long.wrapping_add(long.rotate_left(16));
        u16::from_be((folded >> 16) as u16)
    }

    /// The checksum that makes the bytes summed, and itself, valid.
    #[inline]
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.fold()
    }

    /// Whether bytes with their checksum among them are intact.
    #[inline]
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.fold() == u16::MAX
    }
}

impl Add for Sum {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        self.plus(other)
    }
}

impl AddAssign for Sum {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = self.plus(other);
    }
}

impl Sub for Sum {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self.minus(other)
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sum({:#06x})", self.fold())
    }
}
