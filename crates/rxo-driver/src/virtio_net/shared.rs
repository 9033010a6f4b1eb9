//! A side that its source, its sink and its handle share.
//!
//! The ends may be used on another thread than the handle, but at one time only one of them is used: a guest has a thread
//! of its own, and its handle is used when that thread has ended. So the lock is free whenever it is taken, unless the
//! thread hangs; [`Shared::try_lock`] is for those who may not wait for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

#[derive(Debug)]
pub(crate) struct Shared<S>(Arc<Mutex<S>>);

impl<S> Shared<S> {
    pub(crate) fn new(side: S) -> Self {
        Self(Arc::new(Mutex::new(side)))
    }

    /// The side. Waits for whoever uses it.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        // A side is as it was between two calls of it, whatever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The side; `None` while it is used.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, S>> {
        match self.0.try_lock() {
            Ok(side) => Some(side),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
