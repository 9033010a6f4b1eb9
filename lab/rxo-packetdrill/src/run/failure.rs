//! The report of a failed script, as one block of text.

use std::fmt;

use rxo_frame::Duration;

use super::{Wrong, seconds};
use crate::script::ScriptError;

/// A failed script: the position, its text there, and the actual behaviour.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Failure {
    script: String,
    /// Line number from 1; 0 for the script's end.
    line: usize,
    at: Option<Duration>,
    text: String,
    expected: String,
    got: String,
}

impl Failure {
    pub(super) fn unreadable(script: &str, error: &ScriptError) -> Self {
        Self::refused(script, error.line, &error.what)
    }

    /// Makes the failure of a script that cannot be run.
    pub(super) fn refused(script: &str, line: usize, what: &str) -> Self {
        Self {
            script: script.to_owned(),
            line,
            at: None,
            text: String::new(),
            expected: "a script that can be run here".to_owned(),
            got: what.to_owned(),
        }
    }

    pub(super) fn at(
        script: &str,
        source: &str,
        line: usize,
        at: Duration,
        Wrong { expected, got }: Wrong,
    ) -> Self {
        let text = line.checked_sub(1).and_then(|before| source.lines().nth(before));
        Self {
            script: script.to_owned(),
            line,
            at: Some(at),
            text: text.unwrap_or("the script's end").trim().to_owned(),
            expected,
            got,
        }
    }

    /// Returns the line number from 1; 0 for the script's end.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { script, line, at, text, expected, got } = self;
        write!(f, "{script}:{line}")?;
        if let Some(at) = at {
            write!(f, " at {} s\n  script    {text}", seconds(*at))?;
        }
        write!(f, "\n  expected  {expected}\n  got       {got}")
    }
}
