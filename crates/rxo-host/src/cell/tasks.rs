//! The tasks that wait for a change of a cell.
//!
//! Tasks are separate from the threads that wait for the signal, because a task does not block: it stores a
//! waker, without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};
use std::task::Waker;

use atomic_waker::AtomicWaker;

/// The wakers of at most two tasks, a reader and a writer. The memory is allocated when a task first waits.
#[derive(Debug, Default)]
pub(crate) struct Tasks(OnceLock<Box<[AtomicWaker; 2]>>);

/// The event that a task waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TaskEvent {
    /// The task waits for received data, or for a connection to accept.
    Read,
    /// The task waits for free space in the send buffer, or until the connection is established.
    Write,
}

impl Tasks {
    /// Stores the waker of a task that waits for `event`, in place of the waker stored before for
    /// this event. The caller must check the cell once more afterwards.
    pub(crate) fn register(&self, event: TaskEvent, waker: &Waker) {
        self.0.get_or_init(Box::default)[event as usize].register(waker);
        fence(Ordering::SeqCst);
    }

    /// Wakes all waiting tasks. Each task must check the cell again.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if let Some(wakers) = self.0.get() {
            wakers.iter().for_each(AtomicWaker::wake);
        }
    }
}
