//! The signal with which threads wait for a change of a cell.
//!
//! Contract: notifying never blocks, and costs a few instructions while no thread waits. A counter counts
//! changes. A thread reads the counter before it checks the cell, so it misses no change in between. The
//! eventfd belongs to the handle that waits with it, so a connection without a handle keeps no eventfd.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use super::ready_set::ReadySet;
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::futex;

/// A counter of changes of a cell, with the threads and observers to notify of the next change.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    /// Number of changes so far, wrapping. Threads wait with a futex on this counter.
    changes: AtomicU32,
    waiting: AtomicU32,
    observer: OnceLock<Observer>,
    /// `true` if `observer` must be notified of the next change.
    is_armed: AtomicBool,
    #[cfg(feature = "tokio")]
    tasks: super::Tasks,
}

/// The observer of changes, besides threads that block in [`Signal::wait`].
#[derive(Debug)]
enum Observer {
    /// An eventfd that the application polls.
    Descriptor(Weak<OwnedFd>),
    /// A set of sockets that the application waits for, and this socket's token in the set.
    Set(Arc<ReadySet>, u64),
}

impl Signal {
    /// Counts a change, and wakes all threads and observers that wait for one. Never blocks.
    pub(crate) fn notify(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            // It is no failure if no thread was woken.
            let _woken = futex::wake(&self.changes, futex::Flags::PRIVATE, i32::MAX as u32);
        }
        if self.is_armed.load(Ordering::SeqCst) && self.is_armed.swap(false, Ordering::SeqCst) {
            self.notify_observer();
        }
        #[cfg(feature = "tokio")]
        self.tasks.wake();
    }

    /// Returns the wakers of tasks that wait for a change.
    #[cfg(feature = "tokio")]
    pub(crate) fn tasks(&self) -> &super::Tasks {
        &self.tasks
    }

    /// Returns the number of changes so far. A thread must call this function before it checks the cell, and
    /// pass the number to [`Signal::wait`].
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Blocks until the number of changes differs from `seen`. Returns `false` if `timeout` passes first.
    pub(crate) fn wait(&self, seen: u32, timeout: Option<Duration>) -> bool {
        let timeout = timeout.map(|time| rustix::time::Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let ended = futex::wait(&self.changes, futex::Flags::PRIVATE, seen, timeout.as_ref());
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        ended != Err(rustix::io::Errno::TIMEDOUT)
    }

    /// Returns the eventfd of this signal, stored in `place`. The eventfd becomes readable at the first change
    /// after a call that returned `WouldBlock`. The first call of this function creates the eventfd, already
    /// readable, so that the application checks the socket once.
    pub(crate) fn descriptor<'p>(&self, place: &'p Descriptor) -> io::Result<BorrowedFd<'p>> {
        if let Some(descriptor) = place.0.get() {
            return Ok(descriptor.as_fd());
        }
        let made = Arc::new(eventfd(1, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        // If another thread was faster, the descriptor made here is closed.
        let descriptor = place.0.get_or_init(|| {
            let _first = self.observer.set(Observer::Descriptor(Arc::downgrade(&made)));
            made
        });
        Ok(descriptor.as_fd())
    }

    /// Registers the signal with `set` under `token`. Returns `false` if the signal already has a set or an
    /// eventfd.
    pub(crate) fn join(&self, set: &Arc<ReadySet>, token: u64) -> bool {
        self.observer.set(Observer::Set(Arc::clone(set), token)).is_ok()
    }

    /// Makes the next change notify the eventfd or the set. Used after a call that would have blocked; the
    /// caller must check the cell once more afterwards.
    pub(crate) fn arm(&self) {
        match self.observer.get() {
            None => return,
            Some(Observer::Set(..)) => {}
            Some(Observer::Descriptor(descriptor)) => {
                let Some(descriptor) = descriptor.upgrade() else { return };
                // Resets the eventfd. Fails if it is not readable, which is the wanted state.
                let _emptied = rustix::io::read(&*descriptor, &mut [0; 8]);
            }
        }
        self.is_armed.store(true, Ordering::SeqCst);
    }

    fn notify_observer(&self) {
        match self.observer.get() {
            None => {}
            Some(Observer::Set(set, token)) => set.notify(*token),
            Some(Observer::Descriptor(descriptor)) => {
                // If no handle keeps the descriptor, nobody polls it.
                if let Some(descriptor) = descriptor.upgrade() {
                    // Fails only if the counter is full; then the descriptor is readable anyway.
                    let _written = rustix::io::write(&*descriptor, &1_u64.to_ne_bytes());
                }
            }
        }
    }
}

/// The eventfd of a signal, owned by the handle that waits with it. Dropping this value closes the eventfd.
#[derive(Debug, Default)]
pub(crate) struct Descriptor(OnceLock<Arc<OwnedFd>>);

/// Returns the time that a call may still wait; `None` without a limit. The first call with `deadline` sets it.
#[allow(clippy::disallowed_methods, reason = "a blocking call's timeout is on the system's clock")]
pub(crate) fn time_left(
    timeout: Option<Duration>,
    deadline: &mut Option<Instant>,
) -> Option<Duration> {
    let (timeout, now) = (timeout?, Instant::now());
    Some(deadline.get_or_insert(now + timeout).saturating_duration_since(now))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_change_before_the_wait_ends_it_at_once() {
        let signal = Signal::default();
        let seen = signal.changes();
        signal.notify();
        assert!(signal.wait(seen, None));
    }

    #[test]
    fn without_a_change_the_time_passes() {
        let signal = Signal::default();
        assert!(!signal.wait(signal.changes(), Some(Duration::from_millis(1))));
    }

    #[test]
    fn the_descriptor_is_readable_once_for_each_time_it_is_armed() {
        let (signal, place) = (Signal::default(), Descriptor::default());
        let descriptor = signal.descriptor(&place).unwrap();
        let count = || {
            let mut count = [0; 8];
            rustix::io::read(descriptor, &mut count).map(|_| u64::from_ne_bytes(count)).unwrap_or(0)
        };
        assert_eq!(count(), 1, "readable from the start");
        signal.notify();
        assert_eq!(count(), 0, "nobody has asked");
        signal.arm();
        signal.notify();
        signal.notify();
        assert_eq!(count(), 1);
    }

    #[test]
    fn the_descriptor_is_closed_with_its_place_though_the_signal_stays() {
        let (signal, place) = (Signal::default(), Descriptor::default());
        let number = signal.descriptor(&place).unwrap().as_raw_fd();
        assert_eq!(signal.descriptor(&place).unwrap().as_raw_fd(), number);
        let held = || matches!(signal.observer.get(), Some(Observer::Descriptor(fd)) if fd.strong_count() > 0);
        signal.arm();
        assert!(held());
        drop(place);
        assert!(!held());
        signal.notify();
    }
}
