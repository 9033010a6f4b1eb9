//! The output of a run: lines of text or JSON, printed by a thread, so that the worker never waits.
//!
//! The kinds of JSON lines are `configuration`, `interval`, `notice`, `skipped` and `totals`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use rxo::figures::{Figures, Readings};
use rxo_console::printer::Printer;
use serde::Serialize;

use super::configuration::Configuration;
use crate::numbers::rounded;
use crate::output;

/// Prints the lines of a run.
#[derive(Debug)]
pub(super) struct Sayer {
    printer: Printer,
    form: Form,
    /// The sum of the parts that have ended.
    before: Readings,
    /// The names of the guests.
    guests: Vec<String>,
}

/// How figures are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON, one value a line.
    Json,
    /// Text, with what coalescing did.
    Run,
    /// Text, with what a network card did.
    Card,
}

/// One line that the user should see once.
#[derive(Serialize)]
struct Notice<'a> {
    kind: &'static str,
    text: &'a str,
}

/// Intervals that were left out because the reader was too slow.
#[derive(Serialize)]
struct Skipped {
    kind: &'static str,
    intervals: u64,
}

impl Sayer {
    /// Starts the printing thread. It sets `stop` when the reader is gone.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(form: Form, guests: Vec<String>, stop: Arc<AtomicBool>) -> Result<Self> {
        let skipped = if form == Form::Json { skipped_json } else { skipped_text };
        let printer = Printer::start(MOST_WAITING, skipped, stop)?;
        Ok(Self { printer, form, before: Readings::default(), guests })
    }

    /// Prints the first line: everything is at work.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub(super) fn configuration(&self, configuration: &Configuration) -> Result<()> {
        let is_json = self.form == Form::Json;
        let line = if is_json { output::json(configuration)? } else { configuration.line() };
        self.printer.line(line);
        Ok(())
    }

    /// Prints the figures of the interval from `last` to `now`, which becomes the last. Their time continues
    /// from the parts before.
    pub(super) fn interval(&self, last: &mut Readings, now: Readings) {
        let mut figures = Figures::between(last, &now, &self.guests);
        *last = now;
        figures.elapsed_s = rounded(figures.elapsed_s + self.before.all.elapsed.as_secs_f64(), 3);
        if let Ok(line) = self.rendered(&figures) {
            self.printer.offer(line);
        }
    }

    /// Prints a notice on standard error and, with JSON, also as a line of standard output.
    pub(super) fn notice(&self, text: String) {
        if self.form == Form::Json
            && let Ok(line) = output::json(&Notice { kind: "notice", text: &text })
        {
            self.printer.line(line);
        }
        self.printer.note(text);
    }

    /// Adds a part that has ended to the totals.
    pub(super) fn part_ended(&mut self, part: &Readings) {
        self.before = self.before.plus(part);
    }

    /// Prints the totals of all parts as the last line, `last` included. Waits at most `patience` until all is printed.
    ///
    /// # Errors
    /// If the reader of the output is gone, or too slow.
    pub(super) fn totals(self, last: &Readings, patience: Duration) -> Result<()> {
        let totals = Figures::totals(&self.before.plus(last), &self.guests);
        self.printer.line(self.rendered(&totals)?);
        self.printer.finish(patience)
    }

    fn rendered(&self, figures: &Figures) -> Result<String> {
        match self.form {
            Form::Json => output::json(figures),
            Form::Run => Ok(figures.text()),
            Form::Card => Ok(figures.card_text()),
        }
    }
}

fn skipped_json(intervals: u64) -> String {
    // It has a text and a number: it is JSON.
    output::json(&Skipped { kind: "skipped", intervals }).unwrap_or_default()
}

fn skipped_text(intervals: u64) -> String {
    format!("{intervals} lines left out: nobody read them")
}

/// The most lines that wait. At the least time between two intervals they are some seconds.
const MOST_WAITING: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_counted_in_either_form() {
        assert_eq!(skipped_json(3), r#"{"kind":"skipped","intervals":3}"#);
        assert_eq!(skipped_text(3), "3 lines left out: nobody read them");
    }
}
