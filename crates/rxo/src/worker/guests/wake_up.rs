//! Wake-up of a thread. Other threads wake the thread after they have queued something for it.
//!
//! This module is separate because each guest has a wake-up, and so does the hub, the loop with the nic and the
//! switch. A wake-up costs a system call only if the thread has found nothing to do and may be waiting.
//! Contract: a wake-up never blocks. A frame that was queued before a wake-up is found by the check that
//! follows [`WakeUp::arm`], or the bell wakes the thread.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};

use rxo_device::Descriptors;

/// Wakes a thread that waits for the bell's descriptor, now or the next time that it waits.
pub trait Bell: Descriptors + Send + Sync {
    /// Makes the descriptor readable, so that the thread wakes. Never waits.
    fn ring(&self);

    /// Makes the descriptor unreadable again, so that the thread can wait. Never waits.
    fn clear(&self);
}

/// The wake-up of one thread. Without a bell, the thread needs no wake-up, because that thread does all work itself.
#[derive(Default)]
pub(super) struct WakeUp {
    /// `true` if the thread has found nothing to do, and may be waiting.
    is_armed: AtomicBool,
    bell: OnceLock<Arc<dyn Bell>>,
}

impl WakeUp {
    /// Sets the bell that wakes the thread.
    pub(super) fn set_bell(&self, bell: Arc<dyn Bell>) {
        _ = self.bell.set(bell);
    }

    /// Announces that the thread has found nothing to do. The thread must check once more before it waits.
    pub(super) fn arm(&self) {
        self.is_armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends the state that [`WakeUp::arm`] announced. The thread calls this function before it checks for work
    /// again.
    pub(super) fn disarm(&self) {
        self.is_armed.store(false, Ordering::Relaxed);
        self.bell.get().into_iter().for_each(|bell| bell.clear());
    }

    /// Wakes the thread if it may be waiting. Other threads call this function after they have queued something
    /// for the thread.
    pub(super) fn wake(&self) {
        fence(Ordering::SeqCst);
        let is_armed = &self.is_armed;
        if is_armed.load(Ordering::Relaxed) && is_armed.swap(false, Ordering::AcqRel) {
            self.ring();
        }
    }

    /// Wakes the thread, even if it has work and is not waiting.
    pub(super) fn ring(&self) {
        self.bell.get().into_iter().for_each(|bell| bell.ring());
    }
}

impl Descriptors for WakeUp {
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

        fn clear(&self) {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_thread_that_is_not_about_to_wait_is_not_woken() {
        let (wake_up, bell) = (WakeUp::default(), Arc::new(Rings::default()));
        let rings = || bell.0.load(Ordering::Relaxed);
        wake_up.set_bell(Arc::clone(&bell) as Arc<dyn Bell>);
        wake_up.wake();
        assert_eq!(rings(), 0);
        wake_up.arm();
        wake_up.wake();
        wake_up.wake();
        assert_eq!(rings(), 1, "once");
        wake_up.disarm();
        assert_eq!(rings(), 0);
        wake_up.wake();
        assert_eq!(rings(), 0);
        wake_up.ring();
        assert_eq!(rings(), 1);
    }
}
