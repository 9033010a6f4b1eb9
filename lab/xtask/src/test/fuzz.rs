//! Runs each fuzz target for some seconds, starting from the kept corpus, two at a time.
//!
//! This step searches for new inputs. With `--ci` each target runs for 5 s, with `--all` for 20. The step
//! `test` replays the kept corpus in every run.
//!
//! All targets are one binary. An environment variable selects the target, because the arguments belong to
//! libFuzzer.
//!
//! Built on the pinned stable toolchain: flags enable LLVM's coverage instrumentation, so neither nightly nor
//! cargo-fuzz is needed. New inputs are kept below `target/`.

use std::fs;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, bail};

use super::report::Report;
use super::steps::Scene;
use crate::apt;
use crate::sh::{self, CHECKED, CI_SEED, Program};
use crate::workspace::Workspace;

/// Seconds for which each target runs; the next constant applies with `--all`.
const SECONDS: u32 = 5;
const SECONDS_OF_ALL: u32 = 20;
const AT_ONCE: usize = 2;
/// The binary; the next constant is the variable that selects the target.
const BINARY: &str = "rxo-fuzz";
const VARIABLE: &str = "RXO_FUZZ_TARGET";
/// The kept corpus, with a folder for each target.
const CORPUS: &str = "lab/fuzz/corpus";
/// Number of last output lines shown after a finding: they contain the panic and the input's path.
const LINES_SHOWN: usize = 20;

/// Optimised, unlike most of the profile, because the binary runs longer than its build takes.
const OPTIMISED: &str = "--config profile.ci.opt-level=1";

/// The compiler flags of `cargo fuzz`: counters and comparisons for libFuzzer. The profile enables debug
/// assertions.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Builds the binary and runs every target. The targets are the folders of the kept corpus; the tests of
/// `rxo-fuzz` check that both lists are equal.
///
/// # Errors
/// libFuzzer cannot be compiled, or a target found a failure; the error has the input and the command to
/// repeat it.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    apt::ensure(&[apt::CXX])?;
    let fuzzer = Fuzzer::build(scene)?;
    let seconds = fuzzer.seconds;
    let targets = targets(scene)?;
    let mut findings = Vec::new();
    for pair in targets.chunks(AT_ONCE) {
        let run_one = |target: &String| (target.clone(), fuzzer.run(target));
        let results: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> =
                pair.iter().map(|target| scope.spawn(|| run_one(target))).collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
        });
        for result in results {
            let Ok((target, result)) = result else { bail!("a thread of the fuzz step ended") };
            match result {
                Ok(line) => println!("{target}: {line}"),
                Err(error) => findings.push(format!("{target}: {error:#}")),
            }
        }
    }
    if findings.is_empty() {
        report.note(format!("{} fuzz targets ran {seconds} s each", targets.len()));
        return Ok(());
    }
    bail!("{}", findings.join("\n"))
}

/// Returns the names of the targets, sorted.
fn targets(scene: &Scene) -> Result<Vec<String>> {
    let folder = scene.workspace.root.join(CORPUS);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The built binary, and its input and output folders.
struct Fuzzer {
    root: PathBuf,
    binary: String,
    finds: PathBuf,
    seconds: u32,
}

impl Fuzzer {
    /// Builds the binary. With an explicit `--target`, the flags reach neither build scripts nor procedural
    /// macros, and the other builds, in another folder, stay valid.
    fn build(scene: &Scene) -> Result<Self> {
        let Workspace { root, target, .. } = &scene.workspace;
        let host = host(scene)?;
        scene
            .cargo(&format!(
                "build {CHECKED} {OPTIMISED} -p rxo-fuzz --features fuzzing --target {host}"
            ))
            .env("RUSTFLAGS", FLAGS)
            .run()?;
        Ok(Self {
            root: root.clone(),
            binary: target.join(host).join("ci").join(BINARY).to_string_lossy().into_owned(),
            finds: target.join("fuzz"),
            seconds: if scene.all { SECONDS_OF_ALL } else { SECONDS },
        })
    }

    /// Runs one target. Returns its last line of output; the error describes a finding.
    fn run(&self, target: &str) -> Result<String> {
        let finds = self.finds.join(target);
        fs::create_dir_all(&finds).with_context(|| format!("{}", finds.display()))?;
        let kept = self.root.join(CORPUS).join(target);
        let mut arguments = vec![
            format!("-max_total_time={}", self.seconds),
            format!("-artifact_prefix={}/{target}-", self.finds.display()),
            finds.display().to_string(),
            kept.display().to_string(),
        ];
        if sh::is_ci() {
            arguments.push(format!("-seed={CI_SEED}"));
        }
        let program = Program::new(&self.root, &self.binary, &arguments)
            .env("RUST_BACKTRACE", "0")
            .env(VARIABLE, target);
        let (ended, output) = program.output_of_both()?;
        if ended.is_ok() {
            return Ok(output.lines().next_back().unwrap_or("ran").to_owned());
        }
        let lines: Vec<&str> = output.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n");
        bail!("{last}\nagain: {}", again(target, &self.binary, &output))
    }
}

/// Returns the command that reproduces a finding.
fn again(target: &str, binary: &str, output: &str) -> String {
    let written = "Test unit written to ";
    let input = output.lines().find_map(|line| line.split_once(written)).map(|(_, path)| path);
    format!("{VARIABLE}={target} {binary} {}", input.unwrap_or("(no input was written)"))
}

fn host(scene: &Scene) -> Result<String> {
    let version = Program::new(&scene.workspace.root, "rustc", ["-vV"]).output()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_can_be_repeated() {
        let output = "panicked\nartifact_prefix='t/'; Test unit written to t/parse-crash-1\nx";
        assert_eq!(
            again("parse", "t/rxo-fuzz", output),
            "RXO_FUZZ_TARGET=parse t/rxo-fuzz t/parse-crash-1"
        );
    }
}
