//! The output of a run: lines of text or JSON, printed by a separate thread, so that the worker never waits.
//!
//! A JSON line has time, level and nic in addition to its content, like lines of the [`log`]. The kinds of
//! JSON lines are `configuration`, `interval`, `notice`, `skipped` and `totals`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use rxo::figures::{Figures, Readings};
use rxo_console::log::{self, Level};
use rxo_console::printer::Printer;
use serde::Serialize;

use super::configuration::Configuration;
use crate::numbers::rounded;
use crate::output;

/// Prints the output of a run (configuration, intervals, notices, totals) as text or JSON.
#[derive(Debug)]
pub(super) struct Reporter {
    printer: Printer,
    form: Form,
    nic: String,
    /// The sum of the counters of all parts of the run that have ended. A new part begins when a deleted nic
    /// comes back.
    before: Readings,
    /// The names of the guests, in the order in which their figures are printed.
    guests: Vec<String>,
}

/// The output format of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One JSON object a line.
    Json,
    /// Lines of text about coalescing, for `rxo run`.
    Run,
    /// Lines of text about the work of a network card, for `rxo card`.
    Card,
}

/// A JSON line with a notice for the user, which is printed once.
#[derive(Serialize)]
struct Notice<'a> {
    kind: &'static str,
    text: &'a str,
}

/// The content of a JSON line, with the fields time, level and nic that every line has in addition.
#[derive(Serialize)]
struct Stamped<'a, T> {
    #[serde(flatten)]
    line: &'a T,
    time: String,
    level: Level,
    /// The name of the nic; left out in the line `configuration`, whose content already names the nic.
    #[serde(skip_serializing_if = "Option::is_none")]
    nic: Option<&'a str>,
}

/// A JSON line with the number of intervals whose figures were not printed, because the reader was too slow.
#[derive(Serialize)]
struct Skipped {
    kind: &'static str,
    intervals: u64,
}

impl Reporter {
    /// Starts the printing thread. The thread sets `stop` if the run is in the foreground of a terminal that is closed.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(
        form: Form,
        (nic, guests): (String, Vec<String>),
        stop: Arc<AtomicBool>,
    ) -> Result<Self> {
        let skipped = if form == Form::Json { skipped_json } else { skipped_text };
        let printer = Printer::start(MOST_WAITING, skipped, stop)?;
        Ok(Self { printer, form, nic, before: Readings::default(), guests })
    }

    /// Formats the first line of the output, which describes the configuration.
    ///
    /// # Errors
    /// If the configuration cannot be written as JSON.
    pub(super) fn first_line(&self, configuration: &Configuration) -> Result<String> {
        match self.form {
            Form::Json => stamped(configuration, Level::Info, None),
            Form::Run | Form::Card => Ok(log::for_output(configuration.line())),
        }
    }

    /// Prints a line.
    pub(super) fn line(&self, line: String) {
        self.printer.line(line);
    }

    /// Prints the figures of the interval from `last` to `now`, then sets `last` to `now`. The elapsed time includes
    /// earlier parts of the run.
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
            && let Ok(line) =
                stamped(&Notice { kind: "notice", text: &text }, Level::Notice, Some(&self.nic))
        {
            self.printer.line(line);
        }
        log::write(Level::Notice, &text);
    }

    /// Adds the counters of a part of the run that has ended to the totals.
    pub(super) fn part_ended(&mut self, part: &Readings) {
        self.before = self.before.plus(part);
    }

    /// Prints the totals of all parts, including `last`, as the last line. Waits until everything is printed,
    /// but not for a reader that has stopped reading.
    ///
    /// # Errors
    /// If the reader of the output is too slow, or the last lines cannot be written.
    pub(super) fn totals(self, last: &Readings) -> Result<()> {
        let totals = Figures::totals(&self.before.plus(last), &self.guests);
        self.printer.line(self.rendered(&totals)?);
        self.printer.finish()
    }

    fn rendered(&self, figures: &Figures) -> Result<String> {
        match self.form {
            Form::Json => stamped(figures, Level::Info, Some(&self.nic)),
            Form::Run => Ok(log::for_output(figures.text())),
            Form::Card => Ok(log::for_output(figures.card_text())),
        }
    }
}

fn stamped(line: &impl Serialize, level: Level, nic: Option<&str>) -> Result<String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    output::json(&Stamped { line, time: log::timestamp(since), level, nic })
}

fn skipped_json(intervals: u64) -> String {
    // The value has a text and a number, so it always has a JSON form.
    output::json(&Skipped { kind: "skipped", intervals }).unwrap_or_default()
}

fn skipped_text(intervals: u64) -> String {
    format!("{intervals} lines left out: nobody read them, or they could not be written")
}

/// Maximum number of lines that wait to be printed: a few seconds of output at the shortest interval.
const MOST_WAITING: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_counted_in_either_form() {
        assert_eq!(skipped_json(3), r#"{"kind":"skipped","intervals":3}"#);
        let text = "3 lines left out: nobody read them, or they could not be written";
        assert_eq!(skipped_text(3), text);
    }
}
