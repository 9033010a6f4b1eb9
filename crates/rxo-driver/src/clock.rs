//! Clocks: the only module through which the live parts of this workspace read the time.
//!
//! All other code takes an [`Instant`] as an argument. Contract: [`now`] never goes back, and `StampScale`
//! converts the kernel's wall-clock timestamps to the same clock.
#![allow(unsafe_code, reason = "clock_gettime takes a pointer")]

use rxo_frame::Instant;

/// Returns the time on the system's monotonic clock (`CLOCK_MONOTONIC`). Takes about 25 ns.
#[must_use]
pub fn now() -> Instant {
    Instant::from_nanos(read_ns(libc::CLOCK_MONOTONIC))
}

/// Converts an instant of the standard library, read in this process, to the clock of [`now`]. Reads both clocks, so the
/// result is off by the few tens of nanoseconds between the readings.
#[must_use]
pub fn at(instant: std::time::Instant) -> Instant {
    let (now, also_now) = (now(), std::time::Instant::now());
    match also_now.checked_duration_since(instant) {
        Some(age) => Instant::from_nanos(now.as_nanos().saturating_sub(age.as_nanos() as u64)),
        None => now + instant.duration_since(also_now),
    }
}

/// Returns the processor time that this thread has used so far, in nanoseconds, user and system together.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Converts the kernel's timestamps, which are on the wall clock, to the monotonic clock.
///
/// The offset between the clocks is read again for every batch, so a jump of the wall clock affects only the
/// timestamps of the frames in the ring at that time. [`StampScale::arrival`] limits the result to the range from
/// `earliest` to the time at which the clocks were read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StampScale {
    now: Instant,
    wall_ns: u64,
    /// The earliest arrival time that [`arrival`](Self::arrival) returns.
    earliest: Instant,
}

impl StampScale {
    /// Reads both clocks, a few nanoseconds apart. The caller guarantees that no frame to be converted
    /// arrived before `earliest`.
    pub(crate) fn take(earliest: Instant) -> Self {
        let wall_ns = read_ns(libc::CLOCK_REALTIME);
        Self { now: now(), wall_ns, earliest }
    }

    /// Returns the instant at which the clocks were read.
    pub(crate) const fn taken_at(&self) -> Instant {
        self.now
    }

    /// Converts the kernel's timestamp `stamp_ns` (nanoseconds on the wall clock) to an arrival time between
    /// `earliest` and the reading of the clocks.
    pub(crate) fn arrival(&self, stamp_ns: u64) -> Instant {
        let age_ns = self.wall_ns.saturating_sub(stamp_ns);
        let arrived_at = Instant::from_nanos(self.now.as_nanos().saturating_sub(age_ns));
        arrived_at.max(self.earliest)
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

    const NOW: Instant = Instant::from_nanos(5_000_000);
    const EARLIEST: Instant = Instant::from_nanos(3_000_000);
    const SCALE: StampScale = StampScale { now: NOW, wall_ns: 1_000_000_000, earliest: EARLIEST };

    #[test]
    fn a_stamp_from_the_past_keeps_its_age() {
        assert_eq!(SCALE.arrival(999_000_000), Instant::from_nanos(4_000_000));
    }

    #[test]
    fn a_stamp_from_the_future_arrived_now() {
        assert_eq!(SCALE.arrival(2_000_000_000), NOW);
    }

    /// A wall clock that is set forward makes older timestamps appear older than the frames can be; they are
    /// clamped.
    #[test]
    fn no_stamp_is_older_than_what_it_stands_in() {
        for stamp_ns in [0, 1, 900_000_000, 998_000_000] {
            assert_eq!(SCALE.arrival(stamp_ns), EARLIEST, "{stamp_ns}");
        }
        let early = StampScale { earliest: Instant::ZERO, ..SCALE };
        assert_eq!(early.arrival(0), Instant::ZERO);
    }

    /// Between two readings others may use the core, so only the order is compared.
    #[test]
    fn an_instant_of_the_standard_library_lies_between_those_around_it() {
        let before = now();
        let theirs = std::time::Instant::now();
        let after = now();
        let slack = std::time::Duration::from_secs(60);
        assert!(at(theirs) + slack >= before && at(theirs) <= after + slack);
        let (earlier, later) = (at(theirs - slack), at(theirs + slack));
        assert!(earlier < before && later > after);
    }

    #[test]
    fn now_does_not_go_back() {
        let first = now();
        assert!(now() >= first);
    }
}
