//! TCP sequence numbers.

use core::ops::{Add, Sub};

/// A sequence number: a point on a circle of 2³² (RFC 9293, section 3.4).
///
/// There is no `Ord` on purpose: "less than" means something only within half the circle.
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
    /// Whether this is strictly before `other`, seen along the shorter way round.
    #[inline]
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether this is `other` or after it, seen along the shorter way round.
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

    /// The signed distance from `other` to this, in bytes.
    #[inline]
    fn sub(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}
