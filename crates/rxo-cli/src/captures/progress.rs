//! Progress of the reading: a bar on a terminal, nothing otherwise.

use std::cell::Cell;
use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};
use rxo_capture::Position;

use super::input::Input;

/// A progress bar over the compressed bytes of all captures.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// Bytes of the captures that are done.
    before: Cell<u64>,
}

const KNOWN: &str = "{msg} {bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} ({eta} left)";
const UNKNOWN: &str = "{msg} {spinner} {bytes} {binary_bytes_per_sec}";

impl Progress {
    /// Makes a progress bar over all `inputs`.
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

    /// Shows the name of a capture whose reading begins.
    pub(crate) fn begin(&self, input: &Input) {
        if let Some(bar) = &self.bar {
            bar.set_message(input.name().to_owned());
        }
    }

    /// Shows the progress in the current capture, in bytes.
    pub(crate) fn at(&self, position: Position) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.before.get() + position.file_bytes_read);
        }
    }

    /// Adds the capture that ends to the finished part of the bar.
    pub(crate) fn end(&self, input: &Input) {
        self.before.set(self.before.get() + input.bytes().unwrap_or_default());
    }

    /// Removes the bar after all captures.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
