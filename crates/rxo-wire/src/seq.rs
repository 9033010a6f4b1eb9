//! TCP sequence numbers, which are compared modulo 2³².

use core::ops::{Add, Sub};

/// A TCP sequence number, modulo 2³² (RFC 9293, section 3.4).
///
/// Has no `Ord` on purpose: an order exists only among numbers less than 2³¹ apart.
///
/// # Examples
/// ```
/// use rxo_wire::SeqNumber;
///
/// let last = SeqNumber(u32::MAX);
/// assert_eq!(last + 2, SeqNumber(1));
/// assert!(last.is_before(SeqNumber(1)));
/// assert_eq!(SeqNumber(1) - last, 2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// Returns `true` if this is before `other`, by the shorter distance modulo 2³².
    #[inline]
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Returns `true` if this equals `other` or is after it, by the shorter distance modulo 2³².
    #[inline]
    #[must_use]
    pub const fn is_at_or_after(self, other: Self) -> bool {
        !self.is_before(other)
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;

    #[inline]
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl Sub for SeqNumber {
    type Output = i32;

    /// Returns the signed distance from `other` to this, in bytes.
    #[inline]
    fn sub(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}
