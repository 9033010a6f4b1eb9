//! The clocks: the one place where this workspace's live parts read the time.
//!
//! Everything above takes an [`Instant`] as an argument. Contract: [`now`] never goes back, and
//! an arrival stamped by the kernel on the other clock is put onto the same scale.
#![allow(unsafe_code, reason = "clock_gettime takes a pointer")]

use rxo_frame::Instant;

/// Now, on the system's monotonic clock (`CLOCK_MONOTONIC`). About 25 ns.
#[must_use]
pub fn now() -> Instant {
    Instant::from_nanos(read_ns(libc::CLOCK_MONOTONIC))
}

/// What this thread has run on a processor so far, in nanoseconds, user and system together.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The kernel stamps frames with the wall clock; this carries a stamp over to the monotonic one.
///
/// The distance between the clocks is taken anew for every batch, so a stepped wall clock spoils
/// at most one batch, and [`StampScale::arrival`] keeps even that within the past.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StampScale {
    now: Instant,
    wall_ns: u64,
}

impl StampScale {
    /// Reads both clocks, a few nanoseconds apart.
    pub(crate) fn take() -> Self {
        let wall_ns = read_ns(libc::CLOCK_REALTIME);
        Self { now: now(), wall_ns }
    }

    /// When a frame stamped `stamp_ns` on the wall clock arrived; never later than the reading.
    pub(crate) const fn arrival(&self, stamp_ns: u64) -> Instant {
        let age_ns = self.wall_ns.saturating_sub(stamp_ns);
        Instant::from_nanos(self.now.as_nanos().saturating_sub(age_ns))
    }
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec` into a live one. The clocks used exist on every
    // Linux, so the call cannot fail; if it did, the time would read zero.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_from_the_past_keeps_its_age() {
        let scale = StampScale { now: Instant::from_nanos(5_000), wall_ns: 1_000_000 };
        assert_eq!(scale.arrival(999_000), Instant::from_nanos(4_000));
    }

    #[test]
    fn a_stamp_from_the_future_arrived_now() {
        let scale = StampScale { now: Instant::from_nanos(5_000), wall_ns: 1_000_000 };
        assert_eq!(scale.arrival(2_000_000), Instant::from_nanos(5_000));
    }

    #[test]
    fn now_does_not_go_back() {
        let first = now();
        assert!(now() >= first);
    }
}
