//! Locks, and waiting for the input or the output of a direction.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use rxo::device::Descriptors;
use rxo::driver::udp::{Outbox, UdpSink};
use rxo::driver::wait::{Interest, WaitList};

/// The interval of the protocol's timers, and the longest time for which a thread waits.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Locks `mutex`. Ignores a panic of another thread that held the lock, because all threads end soon after a
/// panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns `true` if `stop` is set. Returns `false` for `None`, which a single thread passes: it checks the
/// flag elsewhere.
pub(crate) fn has_ended(stop: Option<&AtomicBool>) -> bool {
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// Waits until the device `end` is ready for `interest` (reading or writing), or until [`TICK`] has passed.
pub(crate) fn wait_for(end: &impl Descriptors, interest: Interest) -> Result<()> {
    let mut list = WaitList::new();
    list.add(Some(end), interest);
    list.wait(Some(TICK)).map(drop).context("cannot wait")
}

/// Sends the datagrams in `outbox`. If the socket is full, waits for space until `stop` is set; with `None`,
/// returns at once and keeps the remaining datagrams in `outbox`.
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
