//! How threads wait for a change of a cell.
//!
//! Separate because it has its own contract: notifying never blocks, and costs a few instructions while
//! nobody waits. A counter counts changes. A thread reads it before it checks the cell, so it misses no
//! change in between. The descriptor belongs to the handle that waits with it: an orphan keeps none.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::futex;

/// Something that can be waited for.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    /// The number of changes.
    changes: AtomicU32,
    waiting: AtomicU32,
    descriptor: OnceLock<Weak<OwnedFd>>,
    /// Whether the next change makes the descriptor readable.
    is_armed: AtomicBool,
    #[cfg(feature = "tokio")]
    tasks: super::Tasks,
}

impl Signal {
    /// Notifies of a change.
    pub(crate) fn notify(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            // Waking nobody is no failure.
            let _woken = futex::wake(&self.changes, futex::Flags::PRIVATE, i32::MAX as u32);
        }
        if self.is_armed.load(Ordering::SeqCst) && self.is_armed.swap(false, Ordering::SeqCst) {
            self.make_readable();
        }
        #[cfg(feature = "tokio")]
        self.tasks.wake();
    }

    /// The tasks that wait for a change.
    #[cfg(feature = "tokio")]
    pub(crate) fn tasks(&self) -> &super::Tasks {
        &self.tasks
    }

    /// The number of changes so far, to be read before checking the cell.
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Waits until there are more changes than `seen`. Returns `false` if `timeout` passes first.
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

    /// The descriptor of this signal, kept in `place`. It becomes readable at a change after a call that
    /// would have blocked. Made at the first call, and readable then, so that its owner checks once.
    pub(crate) fn descriptor<'p>(&self, place: &'p Descriptor) -> io::Result<BorrowedFd<'p>> {
        if let Some(descriptor) = place.0.get() {
            return Ok(descriptor.as_fd());
        }
        let made = Arc::new(eventfd(1, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        // If another thread was faster, this descriptor is closed.
        let descriptor = place.0.get_or_init(|| {
            let _first = self.descriptor.set(Arc::downgrade(&made));
            made
        });
        Ok(descriptor.as_fd())
    }

    /// Makes the next change make the descriptor readable, after a call that would have blocked. The caller
    /// checks once more afterwards.
    pub(crate) fn arm(&self) {
        if let Some(descriptor) = self.held_descriptor() {
            let mut count = [0; 8];
            // Fails if it is not readable, which is the aim.
            let _emptied = rustix::io::read(&*descriptor, &mut count);
            self.is_armed.store(true, Ordering::SeqCst);
        }
    }

    fn make_readable(&self) {
        if let Some(descriptor) = self.held_descriptor() {
            // Fails only if the counter is full; then it is readable.
            let _written = rustix::io::write(&*descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// The descriptor, while a handle keeps it.
    fn held_descriptor(&self) -> Option<Arc<OwnedFd>> {
        self.descriptor.get().and_then(Weak::upgrade)
    }
}

/// The descriptor of a signal, kept by the handle that waits with it. Dropping it closes the descriptor.
#[derive(Debug, Default)]
pub(crate) struct Descriptor(OnceLock<Arc<OwnedFd>>);

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
        signal.arm();
        assert!(signal.held_descriptor().is_some());
        drop(place);
        assert!(signal.held_descriptor().is_none());
        signal.notify();
    }
}
