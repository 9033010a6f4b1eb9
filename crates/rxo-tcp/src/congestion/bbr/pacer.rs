//! Pacing: the number of bytes that may be sent at once, and the time of the next release.
//!
//! The bytes of one millisecond are sent at once, because timers are not more exact. A late timer releases the
//! bytes of up to a few milliseconds.

use rxo_frame::{Duration, Instant};

/// Releases bytes at a given rate.
#[derive(Debug)]
pub(super) struct Pacer {
    /// The sending rate in bytes per second; 0 while it is unknown, in which case nothing is delayed.
    rate: u64,
    mss: u32,
    /// The largest segment size so far in bytes. The pacer allows for this size even after it was lowered,
    /// because path MTU discovery may try a larger segment.
    largest_mss: u32,
    /// The number of bytes that may be sent now.
    burst: u32,
    /// The time at which more bytes are released.
    due: Instant,
}

impl Pacer {
    pub(super) fn new(mss: u32) -> Self {
        Self { rate: 0, mss, largest_mss: mss, burst: u32::MAX, due: Instant::ZERO }
    }

    /// Sets the size of a full segment, in bytes.
    pub(super) fn set_mss(&mut self, mss: u32) {
        (self.mss, self.largest_mss) = (mss, self.largest_mss.max(mss));
    }

    /// Returns the pacing rate, in bytes per second.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// Sets the pacing rate, in bytes per second. A higher rate shortens the current wait.
    pub(super) fn set_rate(&mut self, rate: u64, now: Instant) {
        let rate = rate.max(self.mss.into());
        if self.rate == 0 {
            (self.burst, self.due) = (0, now);
        } else if rate > self.rate {
            let wait = u128::from(self.due.nanos_since(now)) * u128::from(self.rate);
            let wait_ns = u64::try_from(wait / u128::from(rate)).unwrap_or(u64::MAX);
            self.due = self.due.min(now + Duration::from_nanos(wait_ns));
        }
        self.rate = rate;
    }

    /// Returns the number of bytes that may be sent now.
    pub(super) fn burst(&self) -> u32 {
        self.burst
    }

    /// Returns the number of bytes of one release: one millisecond at the rate, but at least two segments and
    /// the largest segment seen.
    pub(super) fn quantum(&self) -> u32 {
        self.bytes_in(BURST_NS).max(2 * self.mss).max(self.largest_mss)
    }

    /// Returns the time at which [`Pacer::refill`] releases more bytes; `None` if a segment may be sent now.
    pub(super) fn due(&self) -> Option<Instant> {
        (self.burst < self.mss).then_some(self.due)
    }

    /// Releases more bytes if the release is due at `now`.
    pub(super) fn refill(&mut self, now: Instant) {
        if self.burst >= self.mss || now < self.due {
            return;
        }
        let late_ns = now.nanos_since(self.due).min(MOST_LATE_NS);
        self.due = Instant::from_nanos(now.as_nanos() - late_ns);
        self.burst = self.quantum().saturating_add(self.bytes_in(late_ns));
    }

    /// Records that `bytes` bytes are sent at `now`, so that the next bytes wait for the pacing rate.
    pub(super) fn sent(&mut self, now: Instant, bytes: u32) {
        if let Some(ns) = (u64::from(bytes) * SECOND_NS).checked_div(self.rate) {
            self.burst = self.burst.saturating_sub(bytes);
            self.due = (self.due + Duration::from_nanos(ns)).max(now + LEAST_PAUSE);
        }
    }

    fn bytes_in(&self, ns: u64) -> u32 {
        let bytes = u128::from(self.rate) * u128::from(ns) / u128::from(SECOND_NS);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

const SECOND_NS: u64 = 1_000_000_000;
const BURST_NS: u64 = 1_000_000;
/// The shortest time between two releases, however high the rate is.
const LEAST_PAUSE: Duration = Duration::from_micros(50);
const MOST_LATE_NS: u64 = 4 * BURST_NS;
