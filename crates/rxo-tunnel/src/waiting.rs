//! Locks, and waiting for one end of a direction.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use rxo::device::Descriptors;
use rxo::driver::udp::{Outbox, UdpSink};
use rxo::driver::wait::{Interest, WaitList};

/// The interval of the protocol's timers, and the longest time that a thread waits.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Locks `mutex`. If a thread has panicked with the lock, all threads are about to end.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns `true` if `stop` is set. `None` belongs to a thread that is alone, and looks elsewhere.
pub(crate) fn has_ended(stop: Option<&AtomicBool>) -> bool {
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// Waits until `end` is ready, or [`TICK`] has passed.
pub(crate) fn wait_for(end: &impl Descriptors, interest: Interest) -> Result<()> {
    let mut list = WaitList::new();
    list.add(Some(end), interest);
    list.wait(Some(TICK)).map(drop).context("cannot wait")
}

/// Sends the content of `outbox`. While the socket is full, waits until `stop` is set; `None` does not wait.
pub(crate) fn send(
    udp: &mut UdpSink,
    outbox: &mut Outbox,
    stop: Option<&AtomicBool>,
) -> Result<()> {
    while !udp.send(outbox) && stop.is_some_and(|stop| !stop.load(Ordering::Relaxed)) {
        wait_for(udp, Interest::Writable)?;
    }
    Ok(())
}
