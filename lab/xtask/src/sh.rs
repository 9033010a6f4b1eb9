//! Runs other programs, with the same standard input, time limit and output for all.
//!
//! Standard input is closed, so that no program waits for an answer. Under `CI=true` each program has a time
//! limit, so that a hang becomes a failure of that program. On a terminal there is no limit, because
//! `timeout` uses a process group that does not receive Ctrl-C.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

/// Time limit of a single program under `CI=true`, in seconds.
const CI_LIMIT_S: u32 = 1_500;

/// The profile of lints, documentation and tests; Cargo.toml describes it. Cargo always builds the whole
/// workspace: for a part, the dependencies would have other features and be built again.
pub(crate) const CHECKED: &str = "--profile ci";

/// The seed of all random tests under `CI=true`, so that no change is rejected for an older fault. Elsewhere
/// seeds are random, to find new cases, as do the long runs of CONTRIBUTING.md.
pub(crate) const CI_SEED: u32 = 1;

/// Returns `true` under `CI=true` or `CI=1`: nobody reads notes there, so a step that cannot run fails.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Returns `true` if this process is root, and so may install packages.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Returns `true` if a file named `program` is in `PATH`.
pub(crate) fn has_program(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A program to run in `folder`, with no standard input.
pub(crate) struct Program {
    command: Command,
    /// The command as a user would type it.
    shown: String,
}

impl Program {
    /// Returns `program` with `arguments`, to run in `folder`.
    pub(crate) fn new<A: AsRef<OsStr>>(
        folder: &Path,
        program: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let mut command = if is_ci() && has_program("timeout") {
            let mut limited = Command::new("timeout");
            limited.args(["--kill-after=10", &CI_LIMIT_S.to_string(), program]);
            limited
        } else {
            Command::new(program)
        };
        let mut shown = program.to_owned();
        for argument in arguments {
            let argument = argument.as_ref();
            shown.push(' ');
            shown.push_str(&quoted(&argument.to_string_lossy()));
            command.arg(argument);
        }
        command.current_dir(folder).stdin(Stdio::null());
        Self { command, shown }
    }

    /// Returns cargo of the pinned toolchain; `arguments` are separated by white space.
    pub(crate) fn cargo(folder: &Path, arguments: &str) -> Self {
        Self::new(folder, "cargo", arguments.split_whitespace())
    }

    /// Sets an environment variable, which is also shown in front of the command.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self.shown = format!("{name}={} {}", quoted(value), self.shown);
        self
    }

    /// Makes cargo compile the workspace's crates with clippy's driver, which is the compiler with extra
    /// lints. Each lint is an error. The tests run the same build, so that no crate is compiled twice.
    pub(crate) fn linted(mut self) -> Self {
        self.command
            .env("RUSTC_WORKSPACE_WRAPPER", clippy_driver())
            .env("CLIPPY_ARGS", DENY_WARNINGS);
        self
    }

    /// Runs the program; its output appears on our standard output and standard error.
    pub(crate) fn run(mut self) -> Result<()> {
        println!("$ {}", self.shown);
        let status = self.command.status().with_context(|| format!("cannot run {}", self.shown))?;
        self.judge(status)
    }

    /// Runs the program with all its output on standard error. Standard output is reserved for the result,
    /// which another program may read.
    pub(crate) fn run_aside(mut self) -> Result<()> {
        eprintln!("$ {}", self.shown);
        let status = self
            .command
            .stdout(std::io::stderr())
            .status()
            .with_context(|| format!("cannot run {}", self.shown))?;
        self.judge(status)
    }

    /// Runs the program, prints its standard output, and passes each line to `each_line`.
    pub(crate) fn run_reading(mut self, mut each_line: impl FnMut(&str)) -> Result<()> {
        println!("$ {}", self.shown);
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", self.shown))?;
        let output = child.stdout.take().context("a piped output is there")?;
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            each_line(&line);
        }
        let status = child.wait()?;
        self.judge(status)
    }

    /// Runs the program and returns its standard output, without printing it.
    pub(crate) fn output(mut self) -> Result<String> {
        let output = self.command.output().with_context(|| format!("cannot run {}", self.shown))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("`{}` failed ({}): {}", self.shown, output.status, errors.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs the program without printing. Returns its success or failure, and standard output followed by
    /// standard error.
    pub(crate) fn output_of_both(mut self) -> Result<(Result<()>, String)> {
        let output = self.command.output().with_context(|| format!("cannot run {}", self.shown))?;
        let text = [output.stdout, output.stderr].concat();
        Ok((self.judge(output.status), String::from_utf8_lossy(&text).into_owned()))
    }

    fn judge(&self, status: std::process::ExitStatus) -> Result<()> {
        match status.code() {
            Some(0) => Ok(()),
            Some(124 | 137) if is_ci() => {
                bail!("`{}` ran longer than {CI_LIMIT_S} s and was ended", self.shown)
            }
            _ => bail!("`{}` failed ({status})", self.shown),
        }
    }
}

/// The lint arguments in the form in which `cargo clippy -- -D warnings` passes them to its driver.
const DENY_WARNINGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// Returns the path of the pinned toolchain's clippy driver, which is in the compiler's folder.
fn clippy_driver() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sysroot = Program::new(here, "rustc", ["--print", "sysroot"]).output();
        // If rustc does not answer, the driver may still be in `PATH`.
        sysroot.map_or_else(
            |_| "clippy-driver".to_owned(),
            |path| format!("{}/bin/clippy-driver", path.trim()),
        )
    })
}

/// Returns the argument quoted for a shell.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_typed() {
        let program = Program::new(Path::new("/"), "cargo", ["test", "--test", "live_*"])
            .env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(program.shown, "RUSTDOCFLAGS='-D warnings' cargo test --test 'live_*'");
    }

    #[test]
    fn a_failing_program_is_named() {
        let error = Program::new(Path::new("/"), "false", ["x"]).run().unwrap_err();
        assert!(error.to_string().starts_with("`false x` failed"), "{error}");
    }

    #[test]
    fn a_silent_program_keeps_its_output_when_it_fails() {
        let shell = Program::new(Path::new("/"), "sh", ["-c", "echo out; echo err >&2; exit 3"]);
        let (ended, said) = shell.output_of_both().unwrap();
        assert_eq!(said, "out\nerr\n");
        assert!(ended.unwrap_err().to_string().contains("exit status: 3"));
    }

    /// A lint makes the driver fail. The form of its arguments is private to cargo and may change.
    #[test]
    fn a_lint_is_an_error_of_the_driver() {
        let folder = std::env::temp_dir().join(format!("rxo-lint-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("lint.rs"), "pub fn f() -> usize { return 1; }\n").unwrap();
        let compile = |lints: &str| {
            let arguments = ["--crate-type=lib", "--emit=metadata", "lint.rs"];
            let driver = Program::new(&folder, clippy_driver(), arguments);
            driver.env("CLIPPY_ARGS", lints).output_of_both().unwrap()
        };
        let (allowed, denied) = (compile(""), compile(DENY_WARNINGS));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(allowed.0.is_ok() && allowed.1.contains("needless_return"), "{}", allowed.1);
        assert!(denied.0.is_err(), "{}", denied.1);
    }

    #[test]
    fn every_line_is_read_along() {
        let mut seen = Vec::new();
        Program::new(Path::new("/"), "printf", ["a\\nb\\n"])
            .run_reading(|line| seen.push(line.to_owned()))
            .unwrap();
        assert_eq!(seen, ["a", "b"]);
    }
}
