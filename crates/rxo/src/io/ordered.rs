//! Restores the order of batches that several threads process in parallel.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// An exit through which batches leave in the order of their tickets.
///
/// A tunnel that decrypts on several threads receives each batch with a [`Ticket`] and decrypts it in parallel
/// with other threads. It then waits with [`Ticket::wait`] before it passes the packets to the exit, such as a
/// [`PacketWriter`](super::PacketWriter). If each of `n` threads processes one batch at a time, a batch is
/// finished at most `n - 1` batches before its turn. This bounds the reordering: this type queues no batches,
/// and drops none that are late. It does not allocate.
///
/// # Examples
/// ```
/// use std::sync::Mutex;
/// use std::thread;
///
/// use rxo::io::Ordered;
///
/// let (source, exit) = (Mutex::new(0..100), Ordered::new(Vec::new()));
/// let work = || loop {
///     let mut source = source.lock().unwrap();
///     let Some(batch) = source.next() else { break };
///     let ticket = exit.ticket();
///     drop(source);
///     let worked_on = batch * 2;
///     ticket.wait().push(worked_on);
/// };
/// thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(work)));
/// assert!(exit.lock().iter().copied().eq((0..100).map(|batch| batch * 2)));
/// ```
#[derive(Debug)]
pub struct Ordered<E> {
    place: Mutex<Place<E>>,
    /// Signalled when a batch has left.
    left: Condvar,
}

#[derive(Debug)]
struct Place<E> {
    /// The number of the next ticket.
    tickets: u64,
    /// The number of the ticket whose batch leaves next.
    next: u64,
    /// The number of threads that wait for their turn. If it is 0, no thread is woken, which saves a system
    /// call.
    waiting: usize,
    exit: E,
}

/// The position of a batch in the order. A dropped ticket waits until all batches before it have left, and then
/// lets the next batch leave. A thread that fails or panics therefore does not block the others.
#[derive(Debug)]
pub struct Ticket<'o, E> {
    ordered: &'o Ordered<E>,
    number: u64,
}

/// The lock on the exit. Dereferences to the exit, and unlocks it when dropped.
#[derive(Debug)]
pub struct Exit<'t, E>(MutexGuard<'t, Place<E>>);

impl<E> Ordered<E> {
    /// Creates the order for batches that leave through `exit`.
    pub const fn new(exit: E) -> Self {
        let place = Place { tickets: 0, next: 0, waiting: 0, exit };
        Self { place: Mutex::new(place), left: Condvar::new() }
    }

    /// Returns the next ticket. Call it before another thread can take the next batch.
    pub fn ticket(&self) -> Ticket<'_, E> {
        let mut place = self.lock().0;
        place.tickets += 1;
        Ticket { ordered: self, number: place.tickets - 1 }
    }

    /// Locks the exit at once, without a ticket, for example to inspect the exit.
    pub fn lock(&self) -> Exit<'_, E> {
        Exit(self.place.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<E> Ticket<'_, E> {
    /// Returns the number of the batch; batches are counted from 0.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns `true` if all batches before this one have left.
    #[must_use]
    pub fn is_next(&self) -> bool {
        self.ordered.lock().0.next == self.number
    }

    /// Waits until all batches before this one have left, and locks the exit.
    #[must_use]
    pub fn wait(&self) -> Exit<'_, E> {
        let mut place = self.ordered.lock().0;
        while place.next != self.number {
            place.waiting += 1;
            place = self.ordered.left.wait(place).unwrap_or_else(PoisonError::into_inner);
            place.waiting -= 1;
        }
        Exit(place)
    }
}

impl<E> Drop for Ticket<'_, E> {
    fn drop(&mut self) {
        let mut place = self.wait().0;
        place.next += 1;
        if place.waiting > 0 {
            self.ordered.left.notify_all();
        }
    }
}

impl<E> Deref for Exit<'_, E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.0.exit
    }
}

impl<E> DerefMut for Exit<'_, E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.0.exit
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn batches_leave_in_the_order_of_their_tickets() {
        let ordered = Ordered::new(Vec::new());
        let (first, second) = (ordered.ticket(), ordered.ticket());
        assert!(first.is_next() && !second.is_next());
        thread::scope(|scope| {
            scope.spawn(|| second.wait().push(second.number()));
            first.wait().push(first.number());
            drop(first);
        });
        drop(second);
        assert_eq!(*ordered.lock(), [0, 1]);
    }

    #[test]
    fn a_batch_that_is_given_up_holds_up_nobody() {
        let ordered = Ordered::new(());
        let (first, second) = (ordered.ticket(), ordered.ticket());
        thread::scope(|scope| {
            scope.spawn(move || {
                let _dropped = first;
                // The thread gives up.
            });
            drop(second);
        });
        assert!(ordered.ticket().is_next());
    }
}
