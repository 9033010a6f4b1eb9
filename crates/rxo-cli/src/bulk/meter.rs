//! The byte and request counters of all connections, and the processor time of the process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The counters to which all connections add their bytes and requests.
#[derive(Debug, Default)]
pub(super) struct Meter {
    bytes: AtomicU64,
    exchanges: AtomicU64,
    begun: OnceLock<Reading>,
}

/// The values of the counters at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) bytes: u64,
    pub(super) exchanges: u64,
    /// Processor time that the whole process has used so far.
    pub(super) cpu: Duration,
}

impl Meter {
    /// Takes the first reading, when the first connection opens. Later calls do nothing.
    pub(super) fn begin(&self) {
        self.begun.get_or_init(|| self.read());
    }

    /// Returns the reading that was taken when the first connection opened; `None` before that.
    pub(super) fn begun(&self) -> Option<Reading> {
        self.begun.get().copied()
    }

    /// Adds `bytes` to the payload bytes of all connections.
    pub(super) fn passed(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts one answered request.
    pub(super) fn exchanged(&self) {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the present values of all counters, with the processor time.
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
