//! The queue of live tests: each test runs in its own process, several at a time.
//!
//! The module `live` decides which tests can run. With its own process, each test has its own network
//! namespaces, processor time and files; and one queue over all targets leaves no core idle at the end of a
//! target. The longest tests begin first.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::tally::Tally;
use super::super::times::Times;
use crate::sh::Program;

/// A built test target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) name: String,
    program: PathBuf,
    /// Folder of its package, the working directory that cargo would use.
    folder: PathBuf,
}

/// A test of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test<'t> {
    target: &'t Target,
    name: String,
}

/// The tests of a target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed<'t> {
    pub(super) short: Vec<Test<'t>>,
    /// The tests that only `--all` runs.
    pub(super) long: Vec<Test<'t>>,
}

/// The result of a test, its duration and its output.
struct Ended {
    took: Duration,
    result: Result<()>,
    said: String,
}

impl Target {
    /// Returns the test targets in the output of `cargo test --no-run --message-format=json`.
    ///
    /// # Errors
    /// A message is no JSON, or an artifact has no folder.
    pub(super) fn all(messages: &str) -> Result<Vec<Self>> {
        let mut targets = Vec::new();
        for line in messages.lines() {
            let message: Value = serde_json::from_str(line).context("a message of cargo")?;
            let name = message["target"]["name"].as_str();
            let is_test = message["target"]["kind"][0] == "test";
            let (true, Some(name), Some(program)) = (is_test, name, message["executable"].as_str())
            else {
                continue;
            };
            let manifest = message["manifest_path"].as_str().map(Path::new);
            let folder = manifest.and_then(Path::parent).context("a manifest is in a folder")?;
            let (program, folder) = (program.into(), folder.into());
            targets.push(Self { name: name.to_owned(), program, folder });
        }
        Ok(targets)
    }

    /// Lists the tests of this target. Ignored tests count as long.
    ///
    /// # Errors
    /// The test program cannot be run.
    pub(super) fn tests(&self) -> Result<Listed<'_>> {
        let listing = |flags: &[&str]| self.run(flags).output().map(|text| listed(&text));
        let marked = listing(&["--list", "--ignored"])?;
        let (long, short) =
            listing(&["--list"])?.into_iter().partition(|name| marked.contains(name));
        let tests = |names: Vec<String>| names.into_iter().map(|name| Test { target: self, name });
        Ok(Listed { short: tests(short).collect(), long: tests(long).collect() })
    }

    /// Returns the test program with `arguments`.
    fn run(&self, arguments: &[&str]) -> Program {
        Program::new(&self.folder, &self.program.to_string_lossy(), arguments)
    }
}

impl Test<'_> {
    /// Returns package, target and name, because several packages have targets of the same name.
    pub(super) fn full_name(&self) -> String {
        let package = self.target.folder.file_name().unwrap_or_default().to_string_lossy();
        format!("{package} {} {}", self.target.name, self.name)
    }

    /// Runs the test in its own process.
    fn run(&self) -> Ended {
        let begun = Instant::now();
        let arguments = [&self.name, "--exact", "--include-ignored", "--test-threads=1"];
        let output = self.target.run(&arguments).output_of_both();
        let (result, said) = output.unwrap_or_else(|error| (Err(error), String::new()));
        let result = result.and_then(|()| has_run(said.lines().collect()));
        Ended { took: begun.elapsed(), result, said }
    }
}

/// Returns an error unless exactly one test passed: a program that ran no test exits with success as well.
fn has_run(tally: Tally) -> Result<()> {
    match tally {
        Tally { passed: 1, failed: 0, ignored: 0 } => Ok(()),
        _ => bail!("not one test that passed, but {tally:?}"),
    }
}

/// Runs `tests`, `at_once` at a time, the longest of earlier runs first; those without a time come before
/// them. Prints a line for each test, and the output of a failed one. Returns the names of failed tests.
pub(super) fn run(mut tests: Vec<Test<'_>>, at_once: usize, times: &mut Times) -> Vec<String> {
    let before = |test: &Test<'_>| times.of(&test.full_name()).unwrap_or(f64::INFINITY);
    tests.sort_by(|one, other| before(other).total_cmp(&before(one)));
    let (tests, next) = (&tests, &AtomicUsize::new(0));
    let (send, receive) = mpsc::channel();
    let mut failed = Vec::new();
    thread::scope(|scope| {
        for _ in 0..at_once {
            let send = send.clone();
            scope.spawn(move || {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The receiver lives until the last sender is gone.
                    _ = send.send((test.full_name(), test.run()));
                }
            });
        }
        drop(send);
        for (name, ended) in receive {
            println!("{}", line(&name, &ended));
            match ended.result {
                Ok(()) => times.note(&name, ended.took),
                Err(_) => failed.push(name),
            }
        }
    });
    failed
}

/// Formats the line of a test, followed by its output if it failed.
fn line(name: &str, ended: &Ended) -> String {
    let seconds = ended.took.as_secs_f64();
    match &ended.result {
        Ok(()) => format!("{seconds:>7.1} s  {name}"),
        Err(why) => format!("{seconds:>7.1} s  {name} FAILED: {why:#}\n{}", ended.said),
    }
}

/// Returns the names in the output of a test program's `--list`.
pub(super) fn listed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        let text = "bulk::one_flow: test\nrequest_response: test\n\n2 tests, 0 benchmarks\n";
        assert_eq!(listed(text), ["bulk::one_flow", "request_response"]);
    }

    #[test]
    fn built_test_targets_are_found() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"a","kind":["lib"]},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"live","kind":["test"]},"executable":"/t/live-1"}
{"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"b","kind":["bin"]},"executable":"/t/b"}
{"reason":"build-finished","success":true}"#;
        let live =
            Target { name: "live".into(), program: "/t/live-1".into(), folder: "/w/b".into() };
        assert_eq!(Target::all(messages).unwrap(), [live]);
        assert!(Target::all("no message").is_err());
    }

    #[test]
    fn nothing_that_ran_is_nothing_that_passed() {
        let tally = |passed, failed, ignored| Tally { passed, failed, ignored };
        assert!(has_run(tally(1, 0, 0)).is_ok());
        for other in [tally(0, 0, 0), tally(2, 0, 0), tally(0, 0, 1), tally(1, 1, 0)] {
            assert!(has_run(other).is_err(), "{other:?}");
        }
    }
}
