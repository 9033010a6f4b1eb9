//! The interval between two statistics lines, which one thread may change while other threads read it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The interval between two statistics lines, in nanoseconds. 0 means that no lines are printed.
#[derive(Debug, Default)]
pub(crate) struct Interval(AtomicU64);

impl Interval {
    pub(crate) fn new(time: Option<Duration>) -> Self {
        let interval = Self::default();
        interval.set(time);
        interval
    }

    pub(crate) fn get(&self) -> Option<Duration> {
        Some(self.0.load(Ordering::Relaxed)).filter(|ns| *ns > 0).map(Duration::from_nanos)
    }

    pub(crate) fn set(&self, time: Option<Duration>) {
        let ns = u64::try_from(time.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
        self.0.store(ns, Ordering::Relaxed);
    }
}
