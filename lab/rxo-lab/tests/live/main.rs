//! Runs the papers' experiments at a small scale, with real interfaces and real TCP in private networks. The
//! process is root, or makes a user namespace for itself before it starts a second thread.
//!
//! Long tests are marked as ignored: `cargo xtask test --all` runs them, and so does `--include-ignored`.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod gallatin;
mod menon;
mod paro;
#[allow(dead_code, reason = "the tests of the command use the rest")]
#[path = "../../../../crates/rxo-cli/tests/live/process.rs"]
mod process;
#[allow(dead_code, reason = "the tests of the command use the rest")]
#[path = "../../../../crates/rxo-cli/tests/live/report.rs"]
mod report;
mod rsc;
mod smo;
mod soak;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use process::run_within;
use report::LONG;
use rxo_testbed::Namespace;
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_rxo-lab");

/// A test: its name, and a function that panics on failure.
type Test = (&'static str, fn());

/// Runs the command, which must succeed, and returns its JSON.
fn json(line: &str) -> Value {
    let namespace = Namespace::new("repro").unwrap();
    let output = run_within(&namespace, line, LONG);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs an experiment with `--json`, which must succeed, and returns its part of the results.
fn experiment(line: &str) -> Value {
    json(&format!("{line} --json"))["experiments"][0].take()
}

/// Returns the measurements in a document of results with one experiment.
fn measured(document: &Value) -> &Value {
    &document["experiments"][0]["measured"]
}

/// Returns `true` if the machine was idle during each turn of the document's experiment.
fn was_idle(document: &Value) -> bool {
    let turns = document["experiments"][0]["load"].as_array().unwrap();
    turns.iter().all(|turn| turn["permits_verdict"] == true)
}

/// Returns the ids of an experiment's figures.
fn figures(experiment: &Value) -> Vec<&str> {
    let figures = experiment["figures"].as_array().unwrap().iter();
    figures.map(|figure| figure["id"].as_str().unwrap()).collect()
}

/// Returns the verdict on the claim `id` of an experiment.
fn status<'e>(experiment: &'e Value, id: &str) -> &'e str {
    let mut claims = experiment["claims"].as_array().unwrap().iter();
    claims.find(|claim| claim["id"] == id).unwrap()["status"].as_str().unwrap()
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One test at a time: each shares two cores with the kernel's side of its traffic.
    arguments.test_threads = Some(1);
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let short = [gallatin::TESTS, menon::TESTS, paro::TESTS, rsc::TESTS];
    let long = [menon::LONG_TESTS, paro::LONG_TESTS, smo::LONG_TESTS, soak::LONG_TESTS];
    let short = short.into_iter().flatten().map(|test| trial(test, false));
    let long = long.into_iter().flatten().map(|test| trial(test, true));
    libtest_mimic::run(&arguments, short.chain(long).collect()).exit_code()
}

fn trial(&(name, test): &Test, is_long: bool) -> Trial {
    let run = move || {
        test();
        Ok(())
    };
    Trial::test(name, run).with_ignored_flag(is_long)
}
