//! Standard output, as lines of text or as one JSON value a line.
//!
//! It is separate because a closed reader is an ordinary end here, not a panic.

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;

/// Prints text as it is, with a line end.
///
/// # Errors
/// When nobody reads any more.
pub(crate) fn text(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Prints `value` as JSON on one line.
///
/// # Errors
/// When nobody reads any more.
pub(crate) fn json_line(value: &impl Serialize) -> Result<()> {
    text(&serde_json::to_string(value)?)
}

/// Prints `value` as JSON for a person to read too.
///
/// # Errors
/// When nobody reads any more.
pub(crate) fn json_document(value: &impl Serialize) -> Result<()> {
    text(&serde_json::to_string_pretty(value)?)
}

/// Says one line on standard error, beside the result.
pub(crate) fn note(line: &str) {
    // Standard error is closed: the result still counts.
    _ = writeln!(io::stderr(), "rxo: {line}");
}
