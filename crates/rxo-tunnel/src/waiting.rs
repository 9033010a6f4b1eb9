//! Locks, waiting for one end of a direction, and the figures of several threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use rxo::device::Descriptors;
use rxo::driver::wait::{Interest, WaitList};

/// The interval of the protocol's timers, and the longest time for which a thread waits.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Locks `mutex`. Ignores a panic of another thread that held the lock, because all threads end soon after a
/// panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `end` is ready, or [`TICK`] has passed. Returns `false` at once if `stop` is set, or is `None`, which belongs
/// to a thread that is alone and must not wait for one end only.
pub(crate) fn wait_for(
    end: &impl Descriptors,
    interest: Interest,
    stop: Option<&AtomicBool>,
) -> Result<bool> {
    if stop.is_none_or(|stop| stop.load(Ordering::Relaxed)) {
        return Ok(false);
    }
    let mut list = WaitList::new();
    list.add(Some(end), interest);
    list.wait(Some(TICK)).map(|_| true).context("cannot wait")
}

/// Adds the figures of one batch to those of all.
pub(crate) fn add<const N: usize>(totals: &mut [u64; N], more: [u64; N]) {
    totals.iter_mut().zip(more).for_each(|(total, more)| *total += more);
}
