//! A set of sockets that are ready: a queue with the tokens of the sockets that changed, for a thread that uses
//! many sockets.
//!
//! Only the first token in the queue wakes the waiting thread. Until that thread has taken the tokens, further
//! wake-ups would be useless system calls: one round of the worker changes dozens of sockets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::signal::{Signal, time_left};

/// A queue of tokens, and the signal that wakes its owner. Adding a token never blocks.
#[derive(Debug)]
pub(crate) struct ReadySet {
    ready: Sender<u64>,
    tokens: Mutex<Receiver<u64>>,
    /// `true` if the waiting thread has been woken since it last took the tokens.
    is_woken: AtomicBool,
    signal: Signal,
}

impl ReadySet {
    pub(crate) fn new() -> Self {
        let (ready, tokens) = channel();
        let is_woken = AtomicBool::new(false);
        Self { ready, tokens: Mutex::new(tokens), is_woken, signal: Signal::default() }
    }

    /// Appends `token`, and wakes the waiting thread unless it has been woken since it last took the tokens.
    pub(crate) fn notify(&self, token: u64) {
        // Sending cannot fail: the receiver lives as long as `self`.
        let _sent = self.ready.send(token);
        if !self.is_woken.swap(true, Ordering::SeqCst) {
            self.signal.notify();
        }
    }

    /// Moves all tokens to `into`. If there are none, blocks until a token is added or `timeout` passes;
    /// `None` sets no limit.
    pub(crate) fn wait(&self, into: &mut Vec<u64>, timeout: Option<Duration>) {
        let mut deadline = None;
        let before = into.len();
        loop {
            let seen = self.signal.changes();
            // Cleared before the tokens are taken, so that a token added afterwards wakes the thread again.
            self.is_woken.store(false, Ordering::SeqCst);
            into.extend(self.tokens.lock().unwrap_or_else(PoisonError::into_inner).try_iter());
            let left = time_left(timeout, &mut deadline);
            if into.len() > before || left.is_some_and(|left| left.is_zero()) {
                return;
            }
            self.signal.wait(seen, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_come_together_wake_once() {
        let set = ReadySet::new();
        let before = set.signal.changes();
        (1..=3).for_each(|token| set.notify(token));
        assert_eq!(set.signal.changes(), before + 1);
        let mut tokens = Vec::new();
        set.wait(&mut tokens, None);
        assert_eq!(tokens, [1, 2, 3]);
        set.notify(4);
        assert_eq!(set.signal.changes(), before + 2);
        set.wait(&mut tokens, None);
        assert_eq!(tokens, [1, 2, 3, 4]);
    }

    /// Whatever the threads' order, no token is left while somebody waits for it.
    #[test]
    fn no_token_is_missed() {
        let set = ReadySet::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..10_000).for_each(|token| set.notify(token)));
            let mut tokens = Vec::new();
            while tokens.len() < 10_000 {
                set.wait(&mut tokens, None);
            }
            assert!(tokens.is_sorted());
        });
    }
}
