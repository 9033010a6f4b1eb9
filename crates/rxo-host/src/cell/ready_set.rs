//! Which of many sockets to use again: the tokens of those that changed, in a queue.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Signal;

/// The queue, and how its owner waits for it. Telling never blocks.
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

    /// Appends `token`, and wakes who waits.
    pub(crate) fn tell(&self, token: u64) {
        // Sending cannot fail: the other end lives as long as this.
        let _sent = self.told.send(token);
        self.signal.notify();
    }

    /// Moves all tokens to `into`; if there is none, waits for one until `timeout` has passed.
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
