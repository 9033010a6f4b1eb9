//! Finds the flag that an error is about, and the position of that flag in the configuration file.
//!
//! By convention an error about a flag names the flag before anything else, so the error is about the first flag in its
//! line.

use std::collections::BTreeSet;

use anyhow::Error;

use super::file::Entry;
use crate::exit::{is_usage, one_line, usage};

/// The entries of a configuration file that are in effect, and the typed flags, to find the position that an error is
/// about.
#[derive(Debug)]
pub(super) struct Places {
    file: String,
    entries: Vec<Entry>,
    typed: BTreeSet<String>,
}

impl Places {
    pub(super) const fn new(file: String, entries: Vec<Entry>, typed: BTreeSet<String>) -> Self {
        Self { file, entries, typed }
    }

    /// Adds file, line and column to a usage error about a flag in the configuration file. Returns any other error
    /// unchanged.
    pub(super) fn locate(&self, error: Error) -> Error {
        if is_usage(&error) { usage(self.located(&one_line(&error))) } else { error }
    }

    fn located(&self, line: &str) -> String {
        let Self { file, entries, typed } = self;
        let Some(flag) = first_flag(line) else { return line.to_owned() };
        if let Some(entry) = entries.iter().find(|entry| entry.key == flag) {
            let place = entry.place_in(line);
            // A key in the file has no dashes.
            let line = match line.strip_prefix("--").and_then(|line| line.strip_prefix(flag)) {
                Some(rest) => format!("{flag}: {}", rest.trim_start()),
                None => line.to_owned(),
            };
            return format!("{file}:{place}: {line}");
        }
        if typed.contains(flag) { line.to_owned() } else { format!("{file}: {line}") }
    }
}

/// Returns the long name of the first flag in `line`, without dashes; `None` if the line contains no flag.
fn first_flag(line: &str) -> Option<&str> {
    let rest = line.split_once("--")?.1;
    let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_flag_is_what_a_line_is_about() {
        let rows = [
            ("--hold 1h is invalid: end-of-poll", Some("hold")),
            ("invalid value 'x' for '--checksum <HOW>'", Some("checksum")),
            ("--impair-back x: give loss=1%", Some("impair-back")),
            ("no flag here", None),
        ];
        for (line, flag) in rows {
            assert_eq!(first_flag(line), flag);
        }
    }
}
