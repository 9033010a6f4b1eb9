//! Reports of commands as JSON, and a directory for files. The tests of `rxo-lab` use this file, too.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rxo_testbed::Namespace;
use serde_json::Value;

use crate::process::run_within;

/// Time limit for many captures on a machine that compiles at the same time.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// A temporary directory, removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-live-{}-{name}", std::process::id()));
        // Remains of a killed run.
        _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the report of the first of `lines` that `is_enough`, else of the last. On a busy machine a row may
/// have too little traffic to measure; later lines allow more time.
pub(crate) fn report(
    lines: impl IntoIterator<Item = String>,
    is_enough: impl Fn(&Value) -> bool,
) -> Value {
    let namespace = Namespace::new("report").unwrap();
    let mut report = None;
    for line in lines {
        let output = run_within(&namespace, &line, LONG);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_too_little = said.contains("too few to measure") && said.lines().count() == 1;
        assert!(output.status.success() && said.is_empty() || is_too_little, "{line}: {said}");
        report = serde_json::from_slice(&output.stdout).ok().or(report);
        if report.as_ref().is_some_and(&is_enough) {
            break;
        }
    }
    report.expect("the last gives enough time for every row")
}

/// Returns `true` if the machine was idle enough for verdicts while `report` was measured.
pub(crate) fn permits_verdicts(report: &Value) -> bool {
    report["load"]["permits_verdict"].as_bool().unwrap()
}

/// Asserts that the demo printed its sentence, or withheld it because of the load.
pub(crate) fn assert_sentence(report: &Value) {
    match report["sentence"].as_str() {
        Some(sentence) => assert!(sentence.ends_with('.') && permits_verdicts(report), "{report}"),
        None => assert!(!permits_verdicts(report), "{report}"),
    }
}
