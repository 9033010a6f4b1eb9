//! What a run says while it works: each line as text or as JSON, none of them ever waited for.
//!
//! The kinds of JSON lines are `configuration`, `interval`, `notice`, `skipped` and `totals`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use rxo_console::printer::Printer;
use serde::Serialize;

use super::configuration::Configuration;
use super::figures::Figures;
use super::show;
use crate::output;

/// Says lines.
#[derive(Debug)]
pub(super) struct Sayer {
    printer: Printer,
    is_json: bool,
    /// Of the parts that have ended.
    before: Option<Figures>,
}

/// One line that the user should see once.
#[derive(Serialize)]
struct Notice<'a> {
    kind: &'static str,
    text: &'a str,
}

/// Intervals that nobody was there to read.
#[derive(Serialize)]
struct Skipped {
    kind: &'static str,
    intervals: u64,
}

impl Sayer {
    /// Starts a thread that prints. It sets `stop` when nobody reads any more.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub(super) fn start(is_json: bool, stop: Arc<AtomicBool>) -> Result<Self> {
        let skipped = if is_json { skipped_json } else { skipped_text };
        Ok(Self { printer: Printer::start(skipped, stop)?, is_json, before: None })
    }

    /// The first line, from which on everything is at work.
    ///
    /// # Errors
    /// If it is no JSON.
    pub(super) fn configuration(&self, configuration: &Configuration) -> Result<()> {
        let line = if self.is_json { output::json(configuration)? } else { configuration.line() };
        self.printer.line(line);
        Ok(())
    }

    /// The figures of an interval; their time goes on from the parts before.
    pub(super) fn interval(&self, mut figures: Figures) {
        figures.elapsed_s += self.before.as_ref().map_or(0.0, |before| before.elapsed_s);
        if !self.is_json {
            self.printer.interval(show::line(&figures));
        } else if let Ok(line) = output::json(&figures) {
            self.printer.interval(line);
        }
    }

    /// On standard error, and beside it where a program reads.
    pub(super) fn notice(&self, text: String) {
        if self.is_json
            && let Ok(line) = output::json(&Notice { kind: "notice", text: &text })
        {
            self.printer.line(line);
        }
        self.printer.note(text);
    }

    /// A part of the run has ended; its figures are in the totals.
    pub(super) fn part_ended(&mut self, figures: Figures) {
        self.before = Some(match self.before.take() {
            Some(before) => before.and(figures),
            None => figures,
        });
    }

    /// The last line, of all parts; waits until all are printed, at most for `patience`.
    ///
    /// # Errors
    /// If nobody reads any more, or does not for so long.
    pub(super) fn totals(mut self, last: Figures, patience: Duration) -> Result<()> {
        self.part_ended(last);
        let Some(totals) = &self.before else { return Ok(()) };
        let line = if self.is_json { output::json(totals)? } else { show::totals(totals) };
        self.printer.line(line);
        self.printer.finish(patience)
    }
}

fn skipped_json(intervals: u64) -> String {
    // It has a text and a number: it is JSON.
    output::json(&Skipped { kind: "skipped", intervals }).unwrap_or_default()
}

fn skipped_text(intervals: u64) -> String {
    format!("{intervals} lines left out: nobody read them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_counted_in_either_form() {
        assert_eq!(skipped_json(3), r#"{"kind":"skipped","intervals":3}"#);
        assert_eq!(skipped_text(3), "3 lines left out: nobody read them");
    }
}
