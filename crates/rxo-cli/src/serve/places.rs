//! How many clients there may be at once. A place is taken before a client is accepted, so those
//! beyond the bound wait in the listener's backlog and cost nothing here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A bound.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    taken: AtomicUsize,
    gate: Mutex<()>,
    freed: Condvar,
}

/// The right to be there; given back when dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Places>);

impl Places {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let (taken, gate, freed) = (AtomicUsize::new(0), Mutex::new(()), Condvar::new());
        Arc::new(Self { most, taken, gate, freed })
    }

    /// A place; `None` when none is free within `time`. One thread takes, many give back.
    pub(super) fn take(self: &Arc<Self>, time: Duration) -> Option<Place> {
        self.wait_while(time, Self::are_all_taken).then(|| {
            self.taken.fetch_add(1, Ordering::SeqCst);
            Place(Arc::clone(self))
        })
    }

    /// Whether nobody else can come: then nobody who is idle should stay.
    pub(super) fn are_all_taken(&self) -> bool {
        self.taken.load(Ordering::SeqCst) >= self.most
    }

    /// Waits until all places are free, at most for `time`.
    pub(super) fn wait_until_empty(&self, time: Duration) {
        self.wait_while(time, |places| places.taken.load(Ordering::SeqCst) > 0);
    }

    /// Whether it ended to be so within `time`.
    fn wait_while(&self, time: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        // Nothing stands behind the lock that a panic could have left in disorder.
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_timeout_while(gate, time, |()| is_so(self));
        drop(waited);
        !is_so(self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gate = self.0.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn nobody_comes_before_somebody_goes() {
        let places = Places::new(2);
        let one = places.take(SOON).unwrap();
        let _two = places.take(SOON).unwrap();
        assert!(places.are_all_taken() && places.take(Duration::ZERO).is_none());
        let goes = thread::spawn(move || drop(one));
        assert!(places.take(SOON).is_some());
        goes.join().unwrap();
    }
}
