//! Shared side: the device side or driver side that a source, a sink and a handle share.
//!
//! The ends may be used on another thread than the handle, but at one time only one of them is used: a guest has a thread
//! of its own, and its handle is used when that thread has ended. So the lock is free whenever it is taken, unless the
//! thread hangs; [`Shared::try_lock`] is for those who may not wait for it, such as whoever makes new ends for the next
//! thread, which does wait.

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

    /// The events of the side, whoever uses it.
    pub(super) fn events(&self) -> Arc<Events> {
        Arc::clone(&self.events)
    }

    /// Locks the side. Waits until no other thread uses it.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        // A side is as it was between two calls of it, whatever panicked.
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
