//! Standard output, as lines of text or as one JSON value a line.
//!
//! It is separate because a closed reader is an ordinary end here, not a panic.

use std::io::{self, Write};

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
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

/// Prints text on standard error, where the result itself takes standard output.
pub(crate) fn aside(text: &str) {
    // Standard error is closed: the result still counts.
    _ = writeln!(io::stderr(), "{text}");
}

/// `value` as JSON on one line.
///
/// # Errors
/// When it is no JSON, such as a map whose keys are no text.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value)?)
}

/// Says one line on standard error, beside the result. A reader that pauses is waited for, but not
/// for ever: the process must be able to end.
pub(crate) fn note(line: &str) {
    let stderr = io::stderr();
    let timeout = Timespec { tv_sec: PATIENCE_S, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(&timeout));
    if ready != Ok(0) {
        // Standard error is closed: the result still counts.
        _ = writeln!(stderr.lock(), "rxo: {line}");
    }
}

/// How long a note waits for its reader, in seconds.
const PATIENCE_S: i64 = 5;
