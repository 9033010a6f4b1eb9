//! The duration of each step when it last passed, kept in `target/`, so that `--list` can predict a run; also
//! of each live test, so that the longest can start first.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// Seconds by name, and the path of the file that stores them.
pub(super) struct Times {
    file: PathBuf,
    seconds: BTreeMap<String, f64>,
}

impl Times {
    /// Reads the times of the steps from `target`, where earlier runs wrote them.
    pub(super) fn read(target: &Path) -> Self {
        Self::of_file(target.join("xtask-test-seconds.json"))
    }

    /// Reads the times of the live tests from `target`.
    pub(super) fn of_live_tests(target: &Path) -> Self {
        Self::of_file(target.join("xtask-live-seconds.json"))
    }

    /// Reads the times in `file`. A missing or damaged file counts as empty.
    fn of_file(file: PathBuf) -> Self {
        let seconds = fs::read_to_string(&file).map(|text| parse(&text)).unwrap_or_default();
        Self { file, seconds }
    }

    /// Returns the last duration of the step or test in seconds; `None` if it has never passed.
    pub(super) fn of(&self, name: &str) -> Option<f64> {
        self.seconds.get(name).copied()
    }

    /// Records the duration `took` of a step that passed, and writes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn record(&mut self, step: &str, took: Duration) -> Result<()> {
        self.note(step, took);
        self.write()
    }

    /// Records the duration `took` of a step or test that passed, without writing the file.
    pub(super) fn note(&mut self, name: &str, took: Duration) {
        // Rounded to tenths, because people read the file.
        let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
        self.seconds.insert(name.to_owned(), seconds);
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&self) -> Result<()> {
        let all: Map<String, Value> =
            self.seconds.iter().map(|(name, &seconds)| (name.clone(), seconds.into())).collect();
        let text = serde_json::to_string_pretty(&all)? + "\n";
        fs::write(&self.file, text).with_context(|| format!("cannot write {}", self.file.display()))
    }
}

fn parse(text: &str) -> BTreeMap<String, f64> {
    let all: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    all.into_iter().filter_map(|(step, seconds)| Some((step, seconds.as_f64()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_read_again() {
        let folder = std::env::temp_dir().join(format!("xtask-times-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut times = Times::read(&folder);
        assert_eq!(times.of("fmt"), None);
        times.record("fmt", Duration::from_millis(1_240)).unwrap();
        times.record("live", Duration::from_secs(200)).unwrap();
        times.record("fmt", Duration::from_millis(3_000)).unwrap();
        let again = Times::read(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((again.of("fmt"), again.of("live")), (Some(3.0), Some(200.0)));
    }

    #[test]
    fn a_damaged_file_counts_as_empty() {
        assert!(parse("{").is_empty());
        assert_eq!(parse(r#"{"a": "x", "b": 2}"#), BTreeMap::from([("b".to_owned(), 2.0)]));
    }
}
