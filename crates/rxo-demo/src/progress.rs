//! Where an experiment is: a bar on a terminal, plain lines otherwise, nothing beside JSON that
//! is read by a machine. Everything goes to standard error.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};
use rxo_console::output;

/// Shows how far the steps are.
#[derive(Debug)]
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    /// For so many steps; `json` when the result is for a machine.
    pub(crate) fn new(steps: usize, json: bool) -> Self {
        if io::stderr().is_terminal() {
            let bar = ProgressBar::new(steps as u64);
            // The template is a constant; were it wrong, the plain bar would do.
            if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
                bar.set_style(style);
            }
            return Self::Bar(bar);
        }
        if json { Self::Silent } else { Self::Lines }
    }

    /// A step begins.
    pub(crate) fn begin(&self, step: &str) {
        if let Self::Bar(bar) = self {
            bar.set_message(step.to_owned());
        }
    }

    /// It came to this.
    pub(crate) fn end(&self, line: &str) {
        match self {
            Self::Bar(bar) => bar.inc(1),
            Self::Lines => output::note(line),
            Self::Silent => {}
        }
    }

    /// No more steps.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

const TEMPLATE: &str = "{bar:30} {pos}/{len} {msg} ({eta} left)";
