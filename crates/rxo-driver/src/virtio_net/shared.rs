//! Shared side: the device side or driver side that a source, a sink and a handle share.
//!
//! Source and sink may be used on a different thread from the handle, but never at the same time as the handle.
//! Each guest has its own thread, and the guest's handle is used only after that thread has ended. So the lock is
//! always free, unless the thread hangs. [`Shared::try_lock`] is for callers that must not wait for such a
//! thread. A caller that creates source and sink for the next thread waits for the lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::Events;
use super::link::Side;

#[derive(Debug)]
pub(crate) struct Shared<S> {
    side: Arc<Mutex<S>>,
    events: Arc<Events>,
}

impl<S: Side> Shared<S> {
    pub(crate) fn new(side: S) -> Self {
        let events = side.events();
        Self { side: Arc::new(Mutex::new(side)), events }
    }

    /// Returns the events for which the side waits. Needs no lock.
    pub(super) fn events(&self) -> Arc<Events> {
        Arc::clone(&self.events)
    }

    /// Locks the side. Waits until no other thread uses it.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        // A panic cannot leave a side half changed, so a poisoned lock is safe to use.
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the side; `None` if another thread uses it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, S>> {
        match self.side.try_lock() {
            Ok(side) => Some(side),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self { side: Arc::clone(&self.side), events: Arc::clone(&self.events) }
    }
}
