//! The counters of all sessions, and the processor time so far.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Counters to which all sessions add.
#[derive(Debug, Default)]
pub(super) struct Meter {
    bytes: AtomicU64,
    exchanges: AtomicU64,
    begun: OnceLock<Reading>,
}

/// The counters at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) bytes: u64,
    pub(super) exchanges: u64,
    /// Processor time of the whole process.
    pub(super) cpu: Duration,
}

impl Meter {
    /// Starts the clock at the first open connection.
    pub(super) fn begin(&self) {
        self.begun.get_or_init(|| self.read());
    }

    /// Returns the reading from the time when the first connection opened.
    pub(super) fn begun(&self) -> Option<Reading> {
        self.begun.get().copied()
    }

    /// Counts bytes of a stream.
    pub(super) fn passed(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a request that was answered.
    pub(super) fn exchanged(&self) {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads all counters and the processor time.
    pub(super) fn read(&self) -> Reading {
        Reading {
            at: Instant::now(),
            bytes: self.bytes.load(Ordering::Relaxed),
            exchanges: self.exchanges.load(Ordering::Relaxed),
            cpu: process_cpu(),
        }
    }
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // `getrusage` has signed numbers, but never negative ones.
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}
