//! Signals: handles Ctrl-C while Rust code runs, and reports progress.
//!
//! Python records a signal, and handles it when its interpreter runs again, which it does not do while a
//! capture is read. So the reader asks Python from time to time.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Asks Python whether a signal has arrived, and tells it the progress, at most twenty times per second.
pub(crate) struct Signals {
    asked_at: Instant,
    raised: Option<PyErr>,
    /// A function that takes the number of bytes that were read; `None` if nobody wants to know.
    progress: Option<Py<PyAny>>,
}

/// The time between two questions: too short for a person to notice, and long enough to cost nothing.
const PAUSE: Duration = Duration::from_millis(50);

impl Signals {
    pub(crate) fn new(progress: Option<Py<PyAny>>) -> Self {
        Self { asked_at: Instant::now(), raised: None, progress }
    }

    /// Returns `true` if the work should continue; `false` once a handler has raised an exception, such as
    /// `KeyboardInterrupt`.
    pub(crate) fn go_on(&mut self) -> bool {
        self.go_on_at(0)
    }

    /// Returns `true` if the work should continue after `read_bytes` bytes; `false` once a handler, or the function for
    /// the progress, has raised an exception.
    pub(crate) fn go_on_at(&mut self, read_bytes: u64) -> bool {
        if self.raised.is_none() && self.asked_at.elapsed() >= PAUSE {
            let ask = |py: Python<'_>| {
                py.check_signals()?;
                self.progress.iter().try_for_each(|told| told.call1(py, (read_bytes,)).map(drop))
            };
            self.raised = Python::attach(ask).err();
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
