//! Running other programs: one place that decides about standard input, time limits and words.
//!
//! Nothing here ever waits for an answer: standard input is closed. Under `CI=true` each program
//! has a time limit, so that a hang is a failure with a name and not a lost machine; on a terminal
//! it has none, because the limit's process group would keep Ctrl-C away from the program.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

/// Seconds a single program may run under `CI=true`.
const CI_LIMIT_S: u32 = 1_500;

/// The profile of lints, documentation and tests; Cargo.toml says what it is. Cargo is always asked for
/// the whole workspace: for a part of it the dependencies would have other features, and be built again.
pub(crate) const CHECKED: &str = "--profile ci";

/// The seed of everything random under `CI=true`, so that no change is refused for a fault that another
/// brought. On a terminal seeds are random: new cases are found there, and by the long runs of CONTRIBUTING.md.
pub(crate) const CI_SEED: u32 = 1;

/// True when a machine watches and not a person: what could not run is then a failure.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// True when this process may install packages.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// True when `program` can be started by name.
pub(crate) fn has_program(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A program about to run, in `folder`, with no standard input.
pub(crate) struct Program {
    command: Command,
    /// The command as one would type it.
    shown: String,
}

impl Program {
    /// `program` with `arguments`, run in `folder`.
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

    /// Cargo of the pinned toolchain with `arguments` separated by white space.
    pub(crate) fn cargo(folder: &Path, arguments: &str) -> Self {
        Self::new(folder, "cargo", arguments.split_whitespace())
    }

    /// Sets an environment variable; it is shown before the command, as one would type it.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self.shown = format!("{name}={} {}", quoted(value), self.shown);
        self
    }

    /// Makes cargo compile the workspace's crates with clippy's driver, which is the compiler with its lints. Each lint is
    /// an error. The tests run what this builds, so that no crate is compiled once for its lints and once for its tests.
    pub(crate) fn linted(mut self) -> Self {
        self.command
            .env("RUSTC_WORKSPACE_WRAPPER", clippy_driver())
            .env("CLIPPY_ARGS", DENY_WARNINGS);
        self
    }

    /// Runs it with its output on ours.
    pub(crate) fn run(mut self) -> Result<()> {
        println!("$ {}", self.shown);
        let status = self.command.status().with_context(|| format!("cannot run {}", self.shown))?;
        self.judge(status)
    }

    /// Runs it with all that it prints on standard error: standard output is left to the result,
    /// which a program may read.
    pub(crate) fn run_aside(mut self) -> Result<()> {
        eprintln!("$ {}", self.shown);
        let status = self
            .command
            .stdout(std::io::stderr())
            .status()
            .with_context(|| format!("cannot run {}", self.shown))?;
        self.judge(status)
    }

    /// Runs it with its standard output on ours and `each_line` reading along.
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

    /// Runs it silently and gives back its standard output.
    pub(crate) fn output(mut self) -> Result<String> {
        let output = self.command.output().with_context(|| format!("cannot run {}", self.shown))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("`{}` failed ({}): {}", self.shown, output.status, errors.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs it silently; whether it succeeded, or why not, and both outputs.
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

/// The arguments of `cargo clippy -- -D warnings`, as it hands them to its driver.
const DENY_WARNINGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// The driver of the pinned toolchain, which stands beside its compiler.
fn clippy_driver() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sysroot = Program::new(here, "rustc", ["--print", "sysroot"]).output();
        // Without an answer it may still be on the PATH.
        sysroot.map_or_else(
            |_| "clippy-driver".to_owned(),
            |path| format!("{}/bin/clippy-driver", path.trim()),
        )
    })
}

/// The argument as a shell would need it.
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

    /// The way in which arguments reach the driver is between it and cargo, and may change.
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
