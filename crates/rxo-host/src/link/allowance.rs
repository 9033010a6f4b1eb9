//! Rate limits by a token bucket, with the time passed in by the caller.

use rxo_frame::Instant;

/// A token bucket with a maximum number of tokens, and a number of tokens that are added per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    at_once: u64,
    each_second: u64,
    /// The remaining tokens, in units of 1 / [`NANOS_PER_SECOND`] of a token.
    left: u64,
    seen_at: Instant,
}

impl Allowance {
    pub(crate) const fn new(at_once: u32, each_second: u32) -> Self {
        let (at_once, each_second) = (at_once as u64, each_second as u64);
        Self { at_once, each_second, left: at_once * NANOS_PER_SECOND, seen_at: Instant::ZERO }
    }

    /// Removes a token. Returns `false` if the bucket is empty at `now`.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let most = self.at_once * NANOS_PER_SECOND;
        let earned = now.nanos_since(self.seen_at).saturating_mul(self.each_second);
        self.left = self.left.saturating_add(earned).min(most);
        self.seen_at = self.seen_at.max(now);
        let may = self.left >= NANOS_PER_SECOND;
        if may {
            self.left -= NANOS_PER_SECOND;
        }
        may
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use rxo_frame::Duration;

    #[test]
    fn some_at_once_then_as_time_passes() {
        let mut allowance = Allowance::new(3, 10);
        let now = Instant::from_micros(5);
        assert_eq!([(); 4].map(|()| allowance.take(now)), [true, true, true, false]);
        assert!(!allowance.take(now + Duration::from_millis(99)));
        assert!(allowance.take(now + Duration::from_millis(100)));
        assert!(!allowance.take(now + Duration::from_millis(101)));
        let later = now + Duration::from_secs(1 << 40);
        assert_eq!([(); 4].map(|()| allowance.take(later)), [true, true, true, false]);
    }
}
