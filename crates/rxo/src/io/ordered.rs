//! Restores the order of batches that several threads process in parallel.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// An exit through which batches leave in the order of their tickets.
///
/// A tunnel that decrypts on several threads receives each batch with a [`Ticket`] and decrypts it in parallel
/// with other threads. It then waits with [`Ticket::wait`] before it passes the packets to the exit, such as a
/// [`PacketWriter`](super::PacketWriter). If each of `n` threads processes one batch at a time, a batch is
/// finished at most `n - 1` batches before its turn. This bounds the reordering: this type queues no batches,
/// and drops none that are late. Only [`Ticket::wait`] and [`Ordered::lock`] block. It allocates only for tickets that
/// are dropped before their turn.
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
    /// The number of the next ticket.
    tickets: AtomicU64,
    /// Apart from the exit, and locked only for a moment: nobody waits for a batch that leaves.
    turn: Mutex<Turn>,
    /// Signalled when the turn passes to another ticket.
    passed: Condvar,
    exit: Mutex<E>,
}

#[derive(Debug)]
struct Turn {
    /// The number of the ticket whose batch leaves next.
    next: u64,
    /// The later tickets that were dropped.
    dropped: BTreeSet<u64>,
    /// The number of threads that wait for their turn. If it is 0, no thread is woken, which saves a system
    /// call.
    waiting: usize,
}

/// The position of a batch in the order. Dropping a ticket does not block: the next batch leaves without it. A thread that
/// fails or panics therefore does not block the others.
#[derive(Debug)]
pub struct Ticket<'o, E> {
    ordered: &'o Ordered<E>,
    number: u64,
}

/// The lock on the exit. Dereferences to the exit, and unlocks it when dropped.
#[derive(Debug)]
pub struct Exit<'t, E>(MutexGuard<'t, E>);

impl<E> Ordered<E> {
    /// Creates the order for batches that leave through `exit`.
    pub const fn new(exit: E) -> Self {
        let turn = Turn { next: 0, dropped: BTreeSet::new(), waiting: 0 };
        Self {
            tickets: AtomicU64::new(0),
            turn: Mutex::new(turn),
            passed: Condvar::new(),
            exit: Mutex::new(exit),
        }
    }

    /// Returns the next ticket. Call it before another thread can take the next batch. Does not block.
    pub fn ticket(&self) -> Ticket<'_, E> {
        Ticket { ordered: self, number: self.tickets.fetch_add(1, Ordering::Relaxed) }
    }

    /// Locks the exit at once, without a ticket, for example to inspect the exit. Waits while a batch leaves.
    pub fn lock(&self) -> Exit<'_, E> {
        Exit(self.exit.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.ordered.turn().next == self.number
    }

    /// Waits until all batches before this one have left, and locks the exit. The turn stays with the ticket until the
    /// ticket is dropped, so the exit may be unlocked and locked again meanwhile.
    #[must_use]
    pub fn wait(&self) -> Exit<'_, E> {
        let mut turn = self.ordered.turn();
        while turn.next != self.number {
            turn.waiting += 1;
            turn = self.ordered.passed.wait(turn).unwrap_or_else(PoisonError::into_inner);
            turn.waiting -= 1;
        }
        drop(turn);
        self.ordered.lock()
    }
}

impl<E> Drop for Ticket<'_, E> {
    fn drop(&mut self) {
        let mut turn = self.ordered.turn();
        if turn.next != self.number {
            turn.dropped.insert(self.number);
            return;
        }
        turn.next += 1;
        while turn.dropped.first() == Some(&turn.next) {
            turn.dropped.pop_first();
            turn.next += 1;
        }
        if turn.waiting > 0 {
            self.ordered.passed.notify_all();
        }
    }
}

impl<E> Deref for Exit<'_, E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.0
    }
}

impl<E> DerefMut for Exit<'_, E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.0
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
    fn a_ticket_is_drawn_while_a_batch_leaves() {
        let ordered = Ordered::new(());
        let (first, second) = (ordered.ticket(), ordered.ticket());
        let exit = first.wait();
        assert_eq!((ordered.ticket().number(), second.is_next()), (2, false));
        drop(exit);
    }

    #[test]
    fn tickets_are_dropped_in_any_order_and_hold_up_nobody() {
        let ordered = Ordered::new(Vec::new());
        let [first, second, third, fourth] = [(); 4].map(|()| ordered.ticket());
        let exit = first.wait();
        drop(third);
        drop(second);
        assert!(!fourth.is_next());
        drop(exit);
        thread::scope(|scope| {
            scope.spawn(|| fourth.wait().push(fourth.number()));
            drop(first);
        });
        assert!(fourth.is_next() && ordered.turn().dropped.is_empty());
        assert_eq!(*ordered.lock(), [3]);
    }
}
