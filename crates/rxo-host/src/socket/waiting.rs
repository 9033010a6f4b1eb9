//! Blocks on a signal until a call can succeed.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::cell::{Descriptor, Signal, deadlock, is_reading, time_left};

/// The blocking mode and the timeouts of a socket, shared by its clones.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    is_nonblocking: AtomicBool,
    pub(crate) read_timeout: Timeout,
    pub(crate) write_timeout: Timeout,
    descriptor: Descriptor,
}

/// A timeout in nanoseconds; 0 means no limit.
#[derive(Debug, Default)]
pub(crate) struct Timeout(AtomicU64);

impl Timeout {
    pub(crate) fn get(&self) -> Option<Duration> {
        let nanos = self.0.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    /// Sets the timeout; `None` means no limit. A timeout of zero is an error, as in `std::net`.
    pub(crate) fn set(&self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            let message = "a timeout of zero: choose more, or none";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let nanos = timeout.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.0.store(nanos, Ordering::Relaxed);
        Ok(())
    }
}

impl Waiting {
    pub(crate) fn set_nonblocking(&self, is_nonblocking: bool) {
        self.is_nonblocking.store(is_nonblocking, Ordering::Relaxed);
    }

    /// Returns the descriptor of the signal. The descriptor is closed when `self` is dropped.
    pub(crate) fn descriptor(&self, signal: &Signal) -> io::Result<BorrowedFd<'_>> {
        signal.descriptor(&self.descriptor)
    }

    /// Repeats `attempt` while it would block, at most for `timeout`; `None` sets no limit. If the socket is
    /// nonblocking, calls `attempt` only once.
    pub(crate) fn until<R>(
        &self,
        signal: &Signal,
        timeout: Option<Duration>,
        mut attempt: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        if self.is_nonblocking.load(Ordering::Relaxed) {
            return attempt_armed(signal, attempt);
        }
        let mut deadline = None;
        loop {
            let seen = signal.changes();
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if is_reading() {
                return Err(deadlock());
            }
            let left = time_left(timeout, &mut deadline);
            if left.is_some_and(|left| left.is_zero()) || !signal.wait(seen, left) {
                return attempt();
            }
        }
    }
}

/// Calls `attempt`. If `attempt` would block, makes the next change set the descriptor readable, and calls
/// `attempt` again, because a change may have happened in between.
fn attempt_armed<R>(signal: &Signal, mut attempt: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    match attempt() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            signal.arm();
            attempt()
        }
        done => done,
    }
}
