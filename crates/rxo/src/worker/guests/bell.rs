//! The door of a thread: where others knock when they have put something before it.
//!
//! It is separate because each guest has one, and the hub has one. A knock costs a system call only if the thread has found
//! nothing and may wait. Contract: whoever knocks never waits. What was put before a knock is found by the look that
//! follows [`Door::arm`], or the bell rings.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};

use rxo_device::Descriptors;

/// Wakes a thread that waits for its descriptor, or the next time that it does.
pub trait Bell: Descriptors + Send + Sync {
    /// Makes the descriptor readable. Never waits.
    fn ring(&self);

    /// Makes the descriptor unreadable again. Never waits.
    fn silence(&self);
}

/// The door of one thread. Without a bell it is of a thread that also does what others would knock for.
#[derive(Default)]
pub(super) struct Door {
    /// Whether the thread has found nothing.
    is_armed: AtomicBool,
    bell: OnceLock<Arc<dyn Bell>>,
}

impl Door {
    /// Hangs up the bell.
    pub(super) fn hang(&self, bell: Arc<dyn Bell>) {
        _ = self.bell.set(bell);
    }

    /// Called by the thread that found nothing. It must look once more before it waits.
    pub(super) fn arm(&self) {
        self.is_armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Called by the thread before it looks again, if it has armed the door.
    pub(super) fn disarm(&self) {
        self.is_armed.store(false, Ordering::Relaxed);
        self.bell.get().into_iter().for_each(|bell| bell.silence());
    }

    /// Called after something was put before the thread.
    pub(super) fn knock(&self) {
        fence(Ordering::SeqCst);
        let is_armed = &self.is_armed;
        if is_armed.load(Ordering::Relaxed) && is_armed.swap(false, Ordering::AcqRel) {
            self.ring();
        }
    }

    /// Wakes the thread whatever it has found.
    pub(super) fn ring(&self) {
        self.bell.get().into_iter().for_each(|bell| bell.ring());
    }
}

impl Descriptors for Door {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.bell.get().into_iter().for_each(|bell| bell.visit_descriptors(visit));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Rings(AtomicUsize);

    impl Descriptors for Rings {
        fn visit_descriptors<'f>(&'f self, _: &mut dyn FnMut(BorrowedFd<'f>)) {}
    }

    impl Bell for Rings {
        fn ring(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn silence(&self) {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_thread_that_is_not_about_to_wait_is_not_woken() {
        let (door, bell) = (Door::default(), Arc::new(Rings::default()));
        let rings = || bell.0.load(Ordering::Relaxed);
        door.hang(Arc::clone(&bell) as Arc<dyn Bell>);
        door.knock();
        assert_eq!(rings(), 0);
        door.arm();
        door.knock();
        door.knock();
        assert_eq!(rings(), 1, "once");
        door.disarm();
        assert_eq!(rings(), 0);
        door.knock();
        assert_eq!(rings(), 0);
        door.ring();
        assert_eq!(rings(), 1);
    }
}
