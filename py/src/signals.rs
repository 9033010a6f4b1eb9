//! Signals: handles Ctrl-C while Rust code runs.
//!
//! Python records a signal, and handles it when its interpreter runs again, which it does not do while a
//! capture is read. So the reader asks Python from time to time.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Asks Python whether a signal has arrived, at most twenty times per second.
pub(crate) struct Signals {
    asked_at: Instant,
    raised: Option<PyErr>,
}

/// The time between two questions: too short for a person to notice, and long enough to cost nothing.
const PAUSE: Duration = Duration::from_millis(50);

impl Signals {
    pub(crate) fn new() -> Self {
        Self { asked_at: Instant::now(), raised: None }
    }

    /// Returns `true` if the work should continue; `false` once a handler has raised an exception, such as
    /// `KeyboardInterrupt`.
    pub(crate) fn go_on(&mut self) -> bool {
        if self.raised.is_none() && self.asked_at.elapsed() >= PAUSE {
            self.raised = Python::attach(|py| py.check_signals()).err();
            self.asked_at = Instant::now();
        }
        self.raised.is_none()
    }

    /// Returns the exception that a handler raised as an error, if there is one.
    ///
    /// # Errors
    /// The exception of the handler.
    pub(crate) fn result(&mut self) -> PyResult<()> {
        self.raised.take().map_or(Ok(()), Err)
    }
}
