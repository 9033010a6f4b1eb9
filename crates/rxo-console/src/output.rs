//! Writes standard output, as lines of text or as one JSON value per line.
//!
//! `println!` panics if the reader has closed standard output; these functions return an error instead.

use std::io::{self, Write};

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::log::{self, Level};

/// Prints `text` with a line end on standard output.
///
/// # Errors
/// If the reader has closed standard output.
pub fn text(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Prints `value` as JSON on one line of standard output.
///
/// # Errors
/// If the reader has closed standard output.
pub fn json_line(value: &impl Serialize) -> Result<()> {
    text(&serde_json::to_string(value)?)
}

/// Prints `value` as indented JSON on standard output.
///
/// # Errors
/// If the reader has closed standard output.
pub fn json_document(value: &impl Serialize) -> Result<()> {
    text(&serde_json::to_string_pretty(value)?)
}

/// Prints text on standard error, for commands that write their result to standard output.
pub fn aside(text: &str) {
    // A failure is ignored: the result is valid even if standard error is closed.
    _ = writeln!(io::stderr(), "{text}");
}

/// Writes `text` on standard error without a line end: a line of progress for a terminal. Drops `text` while the
/// terminal is stopped (Ctrl-S) or if it is closed, because neither may stop the command.
pub fn progress(text: &str) {
    let mut err = io::stderr().lock();
    let ready = poll(&mut [PollFd::new(&err, PollFlags::OUT)], Some(&Timespec::default()));
    if ready == Ok(1) {
        _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}

/// Formats `value` as JSON on one line.
///
/// # Errors
/// If the value cannot be represented in JSON, for example a map whose keys are not strings.
pub fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value)?)
}

/// Returns a JSON object with these names and values. Values that can be parsed as integers become JSON
/// numbers.
pub fn fields<'a>(values: impl Iterator<Item = (&'a str, String)>) -> Map<String, Value> {
    let value = |text: String| text.parse::<u64>().map_or(Value::String(text), Value::from);
    values.map(|(name, text)| (name.to_owned(), value(text))).collect()
}

/// Logs `line` at the level of events that the user should see ([`Level::Notice`]).
pub fn note(line: &str) {
    log::write(Level::Notice, line);
}
