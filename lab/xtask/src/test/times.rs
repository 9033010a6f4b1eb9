//! How long each step took when it last passed, kept in `target/`, so that `--list` can say what a
//! run will take.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// Seconds by step, and the file that holds them.
pub(super) struct Times {
    file: PathBuf,
    seconds: BTreeMap<String, f64>,
}

impl Times {
    /// Reads what earlier runs left in `target`. A file that is missing or damaged counts as empty.
    pub(super) fn read(target: &Path) -> Self {
        let file = target.join("xtask-test-seconds.json");
        let seconds = fs::read_to_string(&file).map(|text| parse(&text)).unwrap_or_default();
        Self { file, seconds }
    }

    /// Seconds that the step took; `None` if it has not passed yet.
    pub(super) fn of(&self, step: &str) -> Option<f64> {
        self.seconds.get(step).copied()
    }

    /// Records that the step passed in `took`, and writes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn record(&mut self, step: &str, took: Duration) -> Result<()> {
        // Tenths: the file is for people.
        let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
        self.seconds.insert(step.to_owned(), seconds);
        let all: Map<String, Value> =
            self.seconds.iter().map(|(step, &seconds)| (step.clone(), seconds.into())).collect();
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
