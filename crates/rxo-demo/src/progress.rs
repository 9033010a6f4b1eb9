//! Shows the progress of an experiment: a bar on a terminal, plain lines otherwise, nothing with `--json`.
//! All output goes to standard error.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};
use rxo_console::output;

/// The display of how many measurements of an experiment are done.
#[derive(Debug)]
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    /// Creates the display for `steps` measurements. Without a terminal, nothing is shown if `json` is `true`.
    pub(crate) fn new(steps: usize, json: bool) -> Self {
        if io::stderr().is_terminal() {
            let bar = ProgressBar::new(steps as u64);
            // The template is a constant; if it were invalid, the default bar would stay.
            if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
                bar.set_style(style);
            }
            return Self::Bar(bar);
        }
        if json { Self::Silent } else { Self::Lines }
    }

    /// Shows the name of the measurement that begins.
    pub(crate) fn begin(&self, step: &str) {
        if let Self::Bar(bar) = self {
            bar.set_message(step.to_owned());
        }
    }

    /// Shows the result `line` of the measurement that has ended.
    pub(crate) fn end(&self, line: &str) {
        match self {
            Self::Bar(bar) => bar.inc(1),
            Self::Lines => output::note(line),
            Self::Silent => {}
        }
    }

    /// Removes the bar after the last measurement.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

const TEMPLATE: &str = "{bar:30} {pos}/{len} {msg} ({eta} left)";
