//! An unfolded one's complement sum.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use super::portable;

/// A one's complement sum of 16-bit words, not yet folded to 16 bits.
///
/// Words are added in the byte order of the machine, on which the sum does not depend (RFC 1071, section 2 (B)), so no
/// word is swapped until the end. The accumulator has 64 bits; a carry out of them is added at the bottom, so no number
/// of additions overflows.
///
/// One's complement has two zeros. The sum of bytes is the positive zero, which folds to 0, only if every
/// byte is 0. The sum of a packet with its pseudo-header is never positive zero.
#[derive(Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of no bytes at all.
    pub const ZERO: Self = Self(0);

    /// Returns the sum of `bytes`. An odd last byte counts as the high half of a word.
    ///
    /// Intended for headers: [`super::Summer::sum`] is faster for 64 bytes or more.
    #[inline]
    #[must_use]
    pub const fn of(bytes: &[u8]) -> Self {
        Self(portable::sum_short(bytes))
    }

    /// Returns the sum of one 16-bit word, given as an integer.
    #[inline]
    #[must_use]
    pub const fn word(word: u16) -> Self {
        Self(word.to_be() as u64)
    }

    /// Returns the sum of a 32-bit field, given as an integer.
    #[inline]
    #[must_use]
    pub const fn long(field: u32) -> Self {
        Self(field.to_be() as u64)
    }

    /// Returns the sum of several 32-bit fields. Cheaper than adding a [`Sum::long`] for each, because no carry
    /// is needed.
    #[inline]
    #[must_use]
    pub const fn longs<const N: usize>(fields: [u32; N]) -> Self {
        // A carry out of 64 bits would need 2³² fields.
        let (mut total, mut index) = (0, 0);
        while index < N {
            total += fields[index].to_be() as u64;
            index += 1;
        }
        Self(total)
    }

    /// Converts `native`, a sum of native machine words, to a checksum sum.
    #[inline]
    pub(crate) const fn from_raw(native: u64) -> Self {
        Self(native)
    }

    /// Returns this sum plus `other`.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let (sum, carry) = self.0.overflowing_add(other.0);
        Self(sum + carry as u64)
    }

    /// Returns this sum minus `other`, which must be the sum of some of the bytes that are contained in this sum.
    ///
    /// If both sums are equal, the result is the negative zero, which folds to 0xffff.
    #[inline]
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        self.plus(Self(!other.0))
    }

    /// Returns the sum of the same bytes after a shift by one byte, which moves each byte to the other half of
    /// a 16-bit word.
    #[inline]
    #[must_use]
    pub const fn swapped(self) -> Self {
        // Rotating by 8 bits multiplies by 2⁸ modulo 2⁶⁴ - 1, and 2¹⁶ - 1 divides that modulus.
        Self(self.0.rotate_left(8))
    }

    /// Returns the sum that the summed bytes contribute to a larger packet in which they begin at `offset`. At
    /// an odd offset the result is [`Sum::swapped`] (RFC 1071, section 2 (B)).
    #[inline]
    #[must_use]
    pub const fn at(self, offset: usize) -> Self {
        if offset & 1 == 0 { self } else { self.swapped() }
    }

    /// Folds the sum to 16 bits. In one's complement, 0 and 0xffff are the same number. The result is 0 only if
    /// all summed bytes are 0.
    #[inline]
    #[must_use]
    pub const fn fold(self) -> u16 {
        // Adding the two halves crosswise leaves their sum, with its carry, in the upper half.
        let folded = self.0.wrapping_add(self.0.rotate_left(32));
        let long = (folded >> 32) as u32;
        let folded = long.wrapping_add(long.rotate_left(16));
        u16::from_be((folded >> 16) as u16)
    }

    /// Returns the checksum for the summed bytes, whose checksum field must have been 0.
    #[inline]
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.fold()
    }

    /// Returns `true` if the summed bytes, which include their checksum, are valid.
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
