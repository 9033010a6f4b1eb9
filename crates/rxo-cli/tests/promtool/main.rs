//! Checks the pages that rxo writes, and the alert rules in `packaging/`, with promtool, which comes with
//! Prometheus.
//!
//! The pages are kept beside this file; a test of the crate compares them with rxo's output. Needs the Debian
//! package `prometheus`. Without it the tests are reported as ignored, and fail under `CI=true`: none is
//! skipped silently.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Trial};

const TESTS: [(&str, fn()); 4] = [
    ("pages_are_as_promtool_wants_them", pages),
    ("a_page_that_is_wrong_is_noticed", wrong_page),
    ("rules_are_valid", rules),
    ("rules_alert_of_faults_and_of_nothing_else", rules_alert),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let is_there = Command::new("promtool").arg("--version").output().is_ok();
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    if !is_there {
        eprintln!(
            "metrics and rules were not read by another program: promtool is not installed; `sudo apt-get install -y \
             prometheus` adds it"
        );
    }
    let trial = |(name, test): (&str, fn())| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!is_there && !is_ci)
    };
    libtest_mimic::run(&arguments, TESTS.into_iter().map(trial).collect()).exit_code()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/promtool")
}

fn checked(page: &Path) -> Output {
    let page = File::open(page).unwrap();
    Command::new("promtool").args(["check", "metrics"]).stdin(page).output().unwrap()
}

/// Pages are valid and follow the naming conventions, so that promtool prints nothing.
fn pages() {
    for page in ["worker.prom", "host.prom"] {
        let output = checked(&folder().join(page));
        assert!(output.status.success() && output.stderr.is_empty(), "{page}: {output:?}");
    }
}

fn wrong_page() {
    let path = std::env::temp_dir().join(format!("rxo-promtool-{}", std::process::id()));
    let page = "# HELP rxo_frames Frames\n# TYPE rxo_frames counter\nrxo_frames 1\n";
    std::fs::write(&path, page).unwrap();
    let output = checked(&path);
    std::fs::remove_file(&path).unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("_total"), "{output:?}");
}

fn on_rules(arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus");
    let output = Command::new("promtool").args(arguments).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("SUCCESS"), "{output:?}");
}

fn rules() {
    on_rules(&["check", "rules", "--lint-fatal", "alerts.yml"]);
}

fn rules_alert() {
    on_rules(&["test", "rules", "alerts.test.yml"]);
}
