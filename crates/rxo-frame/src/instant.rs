//! A point in time that the caller read from a clock.

use core::ops::{Add, Sub};

pub use core::time::Duration;

/// A point in time: nanoseconds on a monotonic clock whose zero the caller chooses.
///
/// Pure crates receive an `Instant` as an argument and never read a clock, so equal inputs give equal outputs,
/// also with a simulated clock. The range is 584 years; arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The instant at which the clock is zero.
    pub const ZERO: Self = Self(0);

    /// Creates the instant that is `nanos` nanoseconds after the zero of the clock.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates the instant that is `micros` microseconds after the zero of the clock.
    #[inline]
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Returns the number of nanoseconds since the zero of the clock.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the number of nanoseconds from `earlier` to `self`; 0 if `self` is not later. Cheaper than a
    /// [`Duration`], which divides.
    #[inline]
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the instant `nanos` nanoseconds later; saturates. Cheaper than adding a [`Duration`], which
    /// multiplies.
    #[inline]
    #[must_use]
    pub const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// Returns the time from `earlier` to `self`; zero if `self` is not later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn add(self, timeout: Duration) -> Self {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Instant {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}
