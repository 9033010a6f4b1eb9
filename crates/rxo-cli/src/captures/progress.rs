//! Progress of reading captures: a bar if standard error is a terminal, otherwise nothing.

use std::cell::Cell;
use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};
use rxo_capture::Position;

use super::input::Input;

/// A progress bar over all captures that a command reads, in bytes of their files.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// The number of bytes in the captures that were read before the current one.
    before: Cell<u64>,
}

const KNOWN: &str = "{msg} {bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} ({eta} left)";
const UNKNOWN: &str = "{msg} {spinner} {bytes} {binary_bytes_per_sec}";

impl Progress {
    /// Creates a progress bar over the bytes of all `inputs`.
    pub(crate) fn over(inputs: &[Input]) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let total: Option<u64> = inputs.iter().map(Input::bytes).sum();
            let (bar, template) = match total {
                Some(bytes) => (ProgressBar::new(bytes), KNOWN),
                None => (ProgressBar::new_spinner(), UNKNOWN),
            };
            // The templates are constants. If one were invalid, the plain bar would stay.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, before: Cell::new(0) }
    }

    /// Shows the name of the capture `input`, whose reading begins.
    pub(crate) fn begin(&self, input: &Input) {
        if let Some(bar) = &self.bar {
            bar.set_message(input.name().to_owned());
        }
    }

    /// Moves the bar to `position` in the current capture.
    pub(crate) fn at(&self, position: Position) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.before.get() + position.file_bytes_read);
        }
    }

    /// Adds the bytes of the capture `input`, whose reading has ended, to the finished part of the bar.
    pub(crate) fn end(&self, input: &Input) {
        self.before.set(self.before.get() + input.bytes().unwrap_or_default());
    }

    /// Removes the bar, after all captures were read.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
