//! Limits of a guest's use of resources that it shares with other guests, as token buckets.
//!
//! This module is separate so that its bounds can be tested alone. No side effects: the time goes in, and a
//! decision comes out. Contract: in any time `t` a bucket gives at most the sum of `rate · t` tokens, its
//! depth, and the amount by which one request exceeds the depth.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rxo_frame::Instant;

/// The limits of a guest's use of resources that it shares with other guests. The default does not limit the
/// rate at which the guest sends, and limits frames to several receivers to [`Budget::STORM`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Maximum rate at which the guest sends, in bytes per second; frames beyond it wait in the guest's own
    /// rings. `None` for no limit.
    pub rate: Option<u64>,
    /// Maximum number of bytes that the guest may send at once after a pause. Has an effect only with a
    /// `rate`. One frame, even a GSO frame that is larger, may always be sent.
    pub burst: u64,
    /// Maximum number of frames per second to several receivers (broadcasts, groups, unknown addresses), and
    /// also the maximum number of such frames at once. Frames beyond the limit are dropped, except that a frame
    /// to an unknown address leaves by the nic alone. A GSO frame counts as the segments that it becomes.
    /// `None` for no limit.
    pub storm: Option<u64>,
}

impl Budget {
    /// The default of `storm`, in frames per second: about 60 Mbit/s of full frames, and far more than
    /// neighbour discovery, DHCP and routing protocols of one guest need.
    pub const STORM: u64 = 5_000;
    /// The default of `burst`, in bytes: 256 KiB, which is 20 ms at 100 Mbit/s.
    pub const BURST: u64 = 256 << 10;
}

impl Default for Budget {
    fn default() -> Self {
        Self { rate: None, burst: Self::BURST, storm: Some(Self::STORM) }
    }
}

/// A token bucket, full at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// Tokens per second, at least 1.
    rate: u64,
    /// Maximum number of tokens in the bucket.
    depth: u64,
    /// The tokens in the bucket, in billionths of a token, so that the gain per nanosecond is a whole number.
    /// Negative after the bucket gave more than its depth.
    level: i128,
    /// The time at which the bucket was last filled.
    at: Instant,
}

const BILLION: i128 = 1_000_000_000;

/// A bucket that all hubs use, so that a guest has no more with several. It is locked for some nanoseconds, for each
/// frame of a guest with a `rate`, and for each frame to several others.
#[derive(Clone, Debug)]
pub(super) struct SharedBucket(Arc<Mutex<Bucket>>);

impl SharedBucket {
    pub(super) fn new(rate: u64, depth: u64) -> Self {
        Self(Arc::new(Mutex::new(Bucket::new(rate, depth))))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Bucket> {
        // No code that may panic runs while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The buckets of one guest; `None` for each part of its budget without a limit.
#[derive(Clone, Debug)]
pub(super) struct Meters {
    pub(super) rate: Option<SharedBucket>,
    pub(super) storm: Option<SharedBucket>,
}

impl Meters {
    /// Creates the buckets of a guest with this budget. The whole budget is available at first.
    pub(super) fn new(Budget { rate, burst, storm }: Budget) -> Self {
        Self {
            rate: rate.map(|rate| SharedBucket::new(rate, burst)),
            storm: storm.map(|storm| SharedBucket::new(storm, storm)),
        }
    }
}

impl Bucket {
    pub(super) fn new(rate: u64, depth: u64) -> Self {
        Self { rate: rate.max(1), depth, level: i128::from(depth) * BILLION, at: Instant::ZERO }
    }

    /// Takes `tokens` in advance, and returns the time from which they may be used: `now`, or the time that
    /// [`take`](Self::take) would return. Later requests wait for them.
    pub(super) fn reserve(&mut self, tokens: u64, now: Instant) -> Instant {
        let due_at = self.take(tokens, now);
        if due_at.is_err() {
            self.level -= i128::from(tokens) * BILLION;
        }
        due_at.err().unwrap_or(now)
    }

    /// Takes `tokens`. If they exceed the bucket's depth, the bucket gives them once it is full, and its
    /// level becomes negative.
    ///
    /// # Errors
    /// The time at which the tokens will be available, if too few are available at `now`. In this case nothing
    /// is taken.
    pub(super) fn take(&mut self, tokens: u64, now: Instant) -> Result<(), Instant> {
        self.fill(now);
        let missing = i128::from(tokens.min(self.depth)) * BILLION - self.level;
        if missing <= 0 {
            self.level -= i128::from(tokens) * BILLION;
            return Ok(());
        }
        let time_ns = missing.unsigned_abs().div_ceil(self.rate.into());
        Err(now + Duration::from_nanos(u64::try_from(time_ns).unwrap_or(u64::MAX)))
    }

    fn fill(&mut self, now: Instant) {
        let passed_ns = i128::from(now.as_nanos().saturating_sub(self.at.as_nanos()));
        self.at = self.at.max(now);
        let full = i128::from(self.depth) * BILLION;
        let gained = passed_ns.saturating_mul(self.rate.into());
        self.level = self.level.saturating_add(gained).min(full);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn a_bucket_says_when_it_will_have_enough() {
        let mut bucket = Bucket::new(1_000, 10);
        assert_eq!(bucket.take(10, at(5)), Ok(()), "full at first");
        let due = bucket.take(4, at(5)).unwrap_err();
        assert_eq!(due, at(4_000_005));
        assert!(bucket.take(4, at(4_000_004)).is_err());
        assert_eq!(bucket.take(4, due), Ok(()));
        // An amount that exceeds the bucket's size is given when the bucket is full, and the rest is owed.
        assert_eq!(bucket.take(15, due), Err(at(14_000_005)));
        assert_eq!(bucket.take(15, at(14_000_005)), Ok(()));
        assert_eq!(bucket.take(1, at(14_000_005)), Err(at(20_000_005)));
    }

    #[test]
    fn what_is_reserved_may_be_used_when_it_would_have_been_there() {
        let mut bucket = Bucket::new(1_000, 10);
        assert_eq!((bucket.reserve(10, at(5)), bucket.reserve(4, at(5))), (at(5), at(4_000_005)));
        // In the order in which they asked.
        assert_eq!(bucket.reserve(2, at(5)), at(6_000_005));
        assert_eq!(bucket.take(1, at(6_000_005)), Err(at(7_000_005)));
        assert_eq!(bucket.reserve(1, at(9_000_005)), at(9_000_005));
    }

    #[test]
    fn time_that_goes_back_gives_nothing() {
        let mut bucket = Bucket::new(1_000_000_000, 10);
        assert_eq!(bucket.take(10, at(100)), Ok(()));
        assert!(bucket.take(1, at(50)).is_err());
        assert!(bucket.take(10, at(109)).is_err());
        assert_eq!(bucket.take(10, at(110)), Ok(()));
    }

    proptest! {
        /// For any requests at any times, the bucket gives no more than the rate, the depth and one request
        /// allow, and everything that it promised.
        #[test]
        fn it_gives_the_rate_and_the_depth_and_keeps_its_word(
            (rate, depth) in (1_u64..10_000_000_000, 1_u64..1_000_000),
            asks in prop::collection::vec((0_u64..100_000_000, 0_u64..2_000_000), 1..200),
        ) {
            let (mut bucket, mut now, mut given) = (Bucket::new(rate, depth), 0_u64, 0_i128);
            for (gap, tokens) in asks {
                now += gap;
                if let Err(due) = bucket.take(tokens, at(now)) {
                    prop_assert!(due > at(now));
                    prop_assert_eq!(bucket.take(tokens, due), Ok(()), "it was promised");
                    now = due.as_nanos();
                }
                let before = given + i128::from(tokens.min(depth));
                given += i128::from(tokens);
                let most = i128::from(depth) + i128::from(now) * i128::from(rate) / BILLION;
                prop_assert!(before <= most, "{} of {}", before, most);
            }
        }
    }
}
