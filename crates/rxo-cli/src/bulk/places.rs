//! Places: counts the connections that are yet to come, for one worker or for all workers.
//!
//! This module is separate because workers that accept connections share one count, and workers that open
//! connections have a count each. A count changes once for each connection, never for a packet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of connections that are still to be opened or accepted.
#[derive(Debug)]
pub(super) struct Places(AtomicUsize);

impl Places {
    /// Returns the count of connections to come for each of `workers` workers, `connections` in total: one
    /// count for all workers if `are_shared` is `true`, as for accepting; otherwise a count for each worker,
    /// with about equal shares.
    pub(super) fn divided(connections: usize, workers: usize, are_shared: bool) -> Vec<Arc<Self>> {
        let new = |places| Arc::new(Self(AtomicUsize::new(places)));
        if are_shared {
            return vec![new(connections); workers];
        }
        let part = |n| connections / workers + usize::from(n < connections % workers);
        (0..workers).map(|n| new(part(n))).collect()
    }

    /// Decrements the count. Returns `false` if no connection is yet to come.
    pub(super) fn take(&self) -> bool {
        let one_less = |places: usize| places.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Returns `true` if no connection is yet to come.
    pub(super) fn is_none(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Sets the count to zero, so that no further connection comes.
    pub(super) fn take_all(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(places: &Places) -> usize {
        std::iter::repeat_with(|| places.take()).take_while(|is_taken| *is_taken).count()
    }

    #[test]
    fn connections_that_are_opened_are_divided() {
        for (connections, parts) in [(7, vec![3, 2, 2]), (2, vec![1, 1, 0]), (9, vec![3, 3, 3])] {
            let places = Places::divided(connections, 3, false);
            let counts: Vec<_> = places.iter().map(|places| count(places)).collect();
            assert_eq!(counts, parts);
            assert!(places.iter().all(|places| places.is_none()));
        }
    }

    #[test]
    fn connections_that_are_accepted_come_to_any_and_each_counts_once() {
        let places = Places::divided(1_000, 4, true);
        let counts = std::thread::scope(|scope| {
            let threads: Vec<_> =
                places.iter().map(|places| scope.spawn(|| count(places))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        });
        assert_eq!(counts, 1_000);
        assert!(!places[0].take() && places[3].is_none());
    }
}
