//! Ctrl-C while Rust works.
//!
//! Python notes a signal and acts on it when its interpreter runs again, which it does not while a
//! capture is read. So the reader asks from time to time.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Asks Python whether a signal has come, at most twenty times a second.
pub(crate) struct Signals {
    asked_at: Instant,
    raised: Option<PyErr>,
}

/// Short enough for a person not to notice, and long enough to cost nothing.
const PAUSE: Duration = Duration::from_millis(50);

impl Signals {
    pub(crate) fn new() -> Self {
        Self { asked_at: Instant::now(), raised: None }
    }

    /// Whether to go on. `false` once a handler has raised an exception, such as `KeyboardInterrupt`.
    pub(crate) fn go_on(&mut self) -> bool {
        if self.raised.is_none() && self.asked_at.elapsed() >= PAUSE {
            self.raised = Python::attach(|py| py.check_signals()).err();
            self.asked_at = Instant::now();
        }
        self.raised.is_none()
    }

    /// # Errors
    /// The exception that a handler raised.
    pub(crate) fn result(&mut self) -> PyResult<()> {
        self.raised.take().map_or(Ok(()), Err)
    }
}
