//! The connections that wait for memory to send, in order of their requests.
//!
//! Application threads add requests to this queue, and the worker grants them (`worker/rests.rs`). Checking if
//! any connection waits takes no lock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The queue of waiting connections. An entry is the index of a connection and the number of bytes that the
/// connection needs.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: Mutex<VecDeque<(u32, u64)>>,
    count: AtomicUsize,
}

impl Waiting {
    /// Creates an empty queue.
    pub(super) const fn new() -> Self {
        Self { queue: Mutex::new(VecDeque::new()), count: AtomicUsize::new(0) }
    }

    /// Appends the connection with index `place`, which needs `bytes` bytes. If the queue is full, the
    /// connection is served later: the worker checks every connection within a second.
    pub(super) fn push(&self, place: u32, bytes: u64) {
        let mut queue = self.queue();
        if queue.len() < MOST_WAITING {
            queue.push_back((place, bytes));
            self.count.store(queue.len(), Ordering::Relaxed);
        }
    }

    /// Returns `true` if the first connection of the queue needs no more than `left` bytes.
    pub(super) fn is_served_by(&self, left: u64) -> bool {
        self.count.load(Ordering::Relaxed) > 0
            && self.queue().front().is_some_and(|(_, bytes)| *bytes <= left)
    }

    /// Removes and returns the first connection of the queue, if it needs no more than `left` bytes;
    /// otherwise `None`.
    pub(super) fn take(&self, left: u64) -> Option<u32> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut queue = self.queue();
        let (place, _) = queue.pop_front_if(|(_, bytes)| *bytes <= left)?;
        self.count.store(queue.len(), Ordering::Relaxed);
        Some(place)
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<(u32, u64)>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The maximum number of waiting connections, which limits the queue to one megabyte.
const MOST_WAITING: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_served_first_and_nobody_overtakes() {
        let waiting = Waiting::new();
        assert!(!waiting.is_served_by(u64::MAX));
        waiting.push(7, 100);
        waiting.push(8, 10);
        assert!(!waiting.is_served_by(99) && waiting.take(99).is_none());
        assert!(waiting.is_served_by(100));
        assert_eq!(
            [waiting.take(100), waiting.take(100), waiting.take(100)],
            [Some(7), Some(8), None]
        );
    }
}
