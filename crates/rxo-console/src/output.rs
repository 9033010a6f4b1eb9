//! Standard output, as lines of text or as one JSON value a line.
//!
//! It is separate because a closed reader is an ordinary end here, not a panic.

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::log::{self, Level};

/// Prints text as it is, with a line end.
///
/// # Errors
/// If the reader has closed standard output.
pub fn text(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Prints `value` as JSON on one line.
///
/// # Errors
/// If the reader has closed standard output.
pub fn json_line(value: &impl Serialize) -> Result<()> {
    text(&serde_json::to_string(value)?)
}

/// Prints `value` as JSON for a person to read too.
///
/// # Errors
/// If the reader has closed standard output.
pub fn json_document(value: &impl Serialize) -> Result<()> {
    text(&serde_json::to_string_pretty(value)?)
}

/// Prints text on standard error, for commands whose result goes to standard output.
pub fn aside(text: &str) {
    // A failure is ignored: the result is valid although standard error is closed.
    _ = writeln!(io::stderr(), "{text}");
}

/// Formats `value` as JSON on one line.
///
/// # Errors
/// If the value has no JSON form, such as a map whose keys are not text.
pub fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value)?)
}

/// Makes a JSON object of named values. Values that read as numbers become numbers.
pub fn fields<'a>(values: impl Iterator<Item = (&'a str, String)>) -> Map<String, Value> {
    let value = |text: String| text.parse::<u64>().map_or(Value::String(text), Value::from);
    values.map(|(name, text)| (name.to_owned(), value(text))).collect()
}

/// Prints one line on standard error, beside the result: a [`log`] line that the user should see.
pub fn note(line: &str) {
    log::say(Level::Notice, line);
}
