//! A queue of the tokens of sockets that changed, for applications with many sockets.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Signal;

/// A queue of tokens, and the signal that wakes its owner. Adding a token never blocks.
#[derive(Debug)]
pub(crate) struct ReadySet {
    told: Sender<u64>,
    tokens: Mutex<Receiver<u64>>,
    signal: Signal,
}

impl ReadySet {
    pub(crate) fn new() -> Self {
        let (told, tokens) = channel();
        Self { told, tokens: Mutex::new(tokens), signal: Signal::default() }
    }

    /// Appends `token` and wakes a waiting thread.
    pub(crate) fn tell(&self, token: u64) {
        // Sending cannot fail: the receiver lives as long as `self`.
        let _sent = self.told.send(token);
        self.signal.notify();
    }

    /// Moves all tokens to `into`. If there is none, blocks until one comes or `timeout` passes; `None` is no
    /// limit.
    pub(crate) fn wait(&self, into: &mut Vec<u64>, timeout: Option<Duration>) {
        let mut deadline = None;
        let before = into.len();
        loop {
            let seen = self.signal.changes();
            into.extend(self.tokens.lock().unwrap_or_else(PoisonError::into_inner).try_iter());
            let left = timeout.map(|timeout| {
                let deadline = *deadline.get_or_insert_with(|| now() + timeout);
                deadline.saturating_duration_since(now())
            });
            if into.len() > before || left.is_some_and(|left| left.is_zero()) {
                return;
            }
            self.signal.wait(seen, left);
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a blocking call's timeout is on the system's clock")]
fn now() -> Instant {
    Instant::now()
}
