//! The byte and request counters of all connections, and the processor time of the process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The counters of one worker's connections: bytes and requests. Each worker's counters have their own cache
/// lines, because another thread writes the counters of the next worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Meter {
    bytes: AtomicU64,
    exchanges: AtomicU64,
    begun: Arc<OnceLock<Moment>>,
}

/// The counters of all workers. A reader adds up the counters.
#[derive(Clone, Debug)]
pub(super) struct Meters {
    each: Vec<Arc<Meter>>,
    begun: Arc<OnceLock<Moment>>,
}

/// An instant, and the processor time that the whole process had used at that instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: Instant,
    pub(super) cpu: Duration,
}

/// The values of one worker's counters at one instant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) bytes: u64,
    pub(super) exchanges: u64,
}

/// The values of all counters at one instant, separately for each worker.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) moment: Moment,
    pub(super) workers: Vec<Count>,
}

impl Meter {
    /// Reads the counters when the first connection of any worker opens. Later calls do nothing.
    pub(super) fn begin(&self) {
        self.begun.get_or_init(Moment::now);
    }

    /// Adds `bytes` to the payload bytes of the worker's connections.
    pub(super) fn passed(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts one answered request.
    pub(super) fn exchanged(&self) {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> Count {
        Count {
            bytes: self.bytes.load(Ordering::Relaxed),
            exchanges: self.exchanges.load(Ordering::Relaxed),
        }
    }
}

impl Meters {
    /// Makes a meter for each of `workers` workers.
    pub(super) fn new(workers: usize) -> Self {
        let begun = Arc::<OnceLock<_>>::default();
        let meter = |_| Arc::new(Meter { begun: Arc::clone(&begun), ..Meter::default() });
        Self { each: (0..workers).map(meter).collect(), begun }
    }

    /// Returns the meters in the order of the workers.
    pub(super) fn each(&self) -> impl Iterator<Item = Arc<Meter>> {
        self.each.iter().cloned()
    }

    /// Returns the reading from the time at which the first connection opened; `None` before that.
    pub(super) fn begun(&self) -> Option<Reading> {
        let workers = vec![Count::default(); self.each.len()];
        self.begun.get().map(|&moment| Reading { moment, workers })
    }

    /// Returns the current values of all counters, with the processor time.
    pub(super) fn read(&self) -> Reading {
        let workers = self.each.iter().map(|meter| meter.read()).collect();
        Reading { moment: Moment::now(), workers }
    }
}

impl Count {
    /// Returns the counts since `earlier`.
    pub(super) const fn since(self, earlier: Self) -> Self {
        let Self { bytes, exchanges } = earlier;
        Self { bytes: self.bytes - bytes, exchanges: self.exchanges - exchanges }
    }
}

impl Reading {
    /// Returns the sum of all workers.
    pub(super) fn sum(&self) -> Count {
        self.workers.iter().fold(Count::default(), |sum, worker| Count {
            bytes: sum.bytes + worker.bytes,
            exchanges: sum.exchanges + worker.exchanges,
        })
    }
}

impl Moment {
    fn now() -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        // `getrusage` has signed numbers, but never negative ones.
        let part = |value: i64| u64::try_from(value).unwrap_or(0);
        let cpu = Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec));
        Self { at: Instant::now(), cpu }
    }
}
