//! Tests the Python package as a user would install it: builds a wheel, installs it into a fresh virtual
//! environment, and runs its tests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::report::Report;
use super::steps::Scene;
use super::tally::Tally;
use crate::venv::Venv;
use crate::{apt, sh};

/// Builds the wheel, imports it in an environment with no other package, and runs pytest.
///
/// # Errors
/// Python is missing, the wheel does not build or install, or a test fails.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    apt::ensure(&[apt::PYTHON])?;
    if let Err(obstacle) = apt::ensure(&[apt::LIBPCAP]) {
        if sh::is_ci() {
            return Err(obstacle);
        }
        report.note(format!("the test of filters did not run: {obstacle}"));
    }
    let package = scene.workspace.root.join("py");
    let folder = scene.workspace.target.join("py");
    let tests = Venv::create(folder.join("tests"), &package, &[])?;
    tests.pip(&["-r", "tests/requirements.txt"])?;
    let wheel = wheel(&tests, &folder.join("wheels"))?;
    let fresh = Venv::create(folder.join("fresh"), &package, &["--clear"])?;
    installs(&fresh, &wheel)?;
    tests.pip(&["--no-deps", "--force-reinstall", &wheel])?;
    let mut tally = Tally::default();
    let pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--ignore=tests/clusters"];
    let result = tests.python(pytest).run_reading(|line| tally += Tally::of_pytest(line));
    report.count(tally);
    result
}

/// Installs the wheel into the environment `fresh`, which has no other package, and gets a first decision with the first
/// lines of docs/python.md. No compiler is in `PATH`.
///
/// # Errors
/// The wheel cannot be installed, or the decision is wrong.
pub(super) fn installs(fresh: &Venv, wheel: &str) -> Result<()> {
    fresh.pip(&["--no-index", wheel])?;
    // The system's programs stay, `timeout` among them; cargo is elsewhere.
    let path = format!("{}:/usr/bin:/bin", fresh.programs());
    fresh.python(["tests/fresh.py"]).env("PATH", &path).run()
}

/// Builds the wheel into the folder `wheels` and returns its path. It uses the profile of the other steps, so
/// that little has to be compiled again.
fn wheel(tests: &Venv, wheels: &Path) -> Result<String> {
    if wheels.is_dir() {
        fs::remove_dir_all(wheels).with_context(|| format!("{}", wheels.display()))?;
    }
    let out = wheels.to_string_lossy();
    let build = ["-m", "maturin", "build", "--quiet", "--profile", "ci", "--out", &out];
    tests.python(build).linted().run()?;
    only_file(wheels)
}

fn only_file(folder: &Path) -> Result<String> {
    let files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    let [file] = files.as_slice() else {
        bail!("{} wheels in {}", files.len(), folder.display());
    };
    Ok(file.path().to_string_lossy().into_owned())
}
