//! The tasks that wait for a change of a cell.
//!
//! Separate from the signal's threads because a task does not sleep: it leaves a waker, which neither end waits for.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};
use std::task::Waker;

use atomic_waker::AtomicWaker;

/// At most two tasks, which takes no memory until one waits.
#[derive(Debug, Default)]
pub(crate) struct Tasks(OnceLock<Box<[AtomicWaker; 2]>>);

/// What a task waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    /// Text, or a connection to accept.
    Read,
    /// Room for text, or that a connection is open.
    Write,
}

impl Tasks {
    /// Wakes the task of `waker` at the next change, instead of any task that has had this wish before. The
    /// caller checks once more afterwards.
    pub(crate) fn register(&self, wish: Wish, waker: &Waker) {
        self.0.get_or_init(Box::default)[wish as usize].register(waker);
        fence(Ordering::SeqCst);
    }

    /// Wakes the tasks that wait. Each checks what has changed.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if let Some(wakers) = self.0.get() {
            wakers.iter().for_each(AtomicWaker::wake);
        }
    }
}
