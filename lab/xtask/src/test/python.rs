//! Tests the Python package as a user would install it: builds a wheel, installs it into a fresh virtual
//! environment, and runs its tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::report::Report;
use super::steps::Scene;
use super::tally::Tally;
use crate::apt;
use crate::sh::Program;

/// Builds the wheel, imports it in an environment with no other package, and runs pytest.
///
/// # Errors
/// Python is missing, the wheel does not build or install, or a test fails.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    apt::ensure(&[apt::PYTHON])?;
    let place = Place {
        package: scene.workspace.root.join("py"),
        folder: scene.workspace.target.join("py"),
    };
    place.environment("tests", &[])?;
    place.pip("tests", &["-r", "tests/requirements.txt"])?;
    let wheel = place.wheel()?;
    place.environment("fresh", &["--clear"])?;
    place.pip("fresh", &["--no-index", &wheel])?;
    place.python("fresh", &["-c", "import rxo; print('imported rxo', rxo.__version__)"]).run()?;
    place.pip("tests", &["--no-deps", "--force-reinstall", &wheel])?;
    let mut tally = Tally::default();
    let tests = place.python(
        "tests",
        &["-m", "pytest", "-q", "-p", "no:cacheprovider", "--ignore=tests/clusters"],
    );
    let result = tests.run_reading(|line| tally += read(line));
    report.count(tally);
    result
}

/// The folder of the package, and the folder of the build.
struct Place {
    package: PathBuf,
    folder: PathBuf,
}

impl Place {
    /// Makes a virtual environment. Without `--clear` an existing one keeps its packages.
    fn environment(&self, name: &str, flags: &[&str]) -> Result<()> {
        let folder = self.folder.join(name).to_string_lossy().into_owned();
        let arguments = ["-m", "venv"].iter().chain(flags).copied().chain([folder.as_str()]);
        Program::new(&self.package, "python3", arguments).run()
    }

    fn python(&self, environment: &str, arguments: &[&str]) -> Program {
        let python = self.folder.join(environment).join("bin/python");
        Program::new(&self.package, &python.to_string_lossy(), arguments)
            .env("PYTHONDONTWRITEBYTECODE", "1")
    }

    fn pip(&self, environment: &str, what: &[&str]) -> Result<()> {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        self.python(environment, &[&install, what].concat()).run()
    }

    /// Builds the wheel and returns its path. It uses the profile of the other steps, so that little has to
    /// be compiled again.
    fn wheel(&self) -> Result<String> {
        let wheels = self.folder.join("wheels");
        if wheels.is_dir() {
            fs::remove_dir_all(&wheels).with_context(|| format!("{}", wheels.display()))?;
        }
        let out = wheels.to_string_lossy().into_owned();
        let build = ["-m", "maturin", "build", "--quiet", "--profile", "ci", "--out", &out];
        self.python("tests", &build).linted().run()?;
        only_file(&wheels)
    }
}

fn only_file(folder: &Path) -> Result<String> {
    let files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    let [file] = files.as_slice() else {
        bail!("{} wheels in {}", files.len(), folder.display());
    };
    Ok(file.path().to_string_lossy().into_owned())
}

/// Reads the counts in the last line of pytest: `2 failed, 30 passed in 4.10s`.
fn read(line: &str) -> Tally {
    let mut tally = Tally::default();
    let Some((counts, _)) = line.rsplit_once(" in ") else { return tally };
    for count in counts.split(", ") {
        let Some((number, what)) = count.split_once(' ') else { continue };
        let Ok(number) = number.parse() else { continue };
        match what {
            "passed" => tally.passed = number,
            "failed" | "error" | "errors" => tally.failed += number,
            "skipped" => tally.ignored = number,
            _ => {}
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_pytest_is_read() {
        let counts = |passed, failed, ignored| Tally { passed, failed, ignored };
        assert_eq!(read("30 passed in 4.10s"), counts(30, 0, 0));
        assert_eq!(read("2 failed, 28 passed, 1 warning in 4.10s"), counts(28, 2, 0));
        assert_eq!(read("FAILED tests/test_a.py::b - failed in 3"), counts(0, 0, 0));
    }
}
