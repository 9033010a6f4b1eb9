//! Tests the Python package on Ray, Dask and Spark, with local workers.
//!
//! The three are installed from PyPI into a virtual environment below the target folder, which later runs
//! reuse.

use anyhow::{Context, Result, bail};

use super::report::Report;
use super::steps::Scene;
use crate::sh::{self, Program};
use crate::venv::Venv;

/// Packages to install, each with its dependencies.
const PACKAGES: &[&str] = &[
    "maturin==1.16.0",
    "pytest==9.2.0",
    "fsspec==2026.9.0",
    "ray==2.60.0",
    "dask==2026.8.0",
    "distributed==2026.8.0",
    "pyspark==4.3.0",
];

/// Builds the package, and runs `py/tests/clusters`.
///
/// # Errors
/// A program cannot be installed or run, or a test fails.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    if !sh::has_program("java") {
        bail!("java is missing, which Spark needs: install Java 17 or later");
    }
    let root = &scene.workspace.root;
    let folder = scene.workspace.target.join("clusters");
    let path = |name: &str| folder.join("bin").join(name).to_string_lossy().into_owned();
    let venv = Venv::create(folder.clone(), root, &[])?;
    venv.pip(PACKAGES)?;
    let built = ["develop", "--quiet", "--profile", "ci", "-m", "py/Cargo.toml"];
    Program::new(root, &path("maturin"), built)
        .env("VIRTUAL_ENV", &folder.to_string_lossy())
        .run()?;
    let mut passed = None;
    let tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "py/tests/clusters"];
    venv.python(tests)
        .env("PYTHONPATH", "py/tests")
        .env("RAY_USAGE_STATS_ENABLED", "0")
        .env("RAY_AUTH_MODE", "disabled")
        .env("PYSPARK_PYTHON", &path("python"))
        .run_reading(|line| passed = number(line).or(passed))?;
    let passed = passed.context("pytest did not say how many tests passed")?;
    report.note(format!("{passed} tests of the Python package passed on Ray, Dask and Spark"));
    Ok(())
}

/// Returns the number of passed tests in the last line of pytest.
fn number(line: &str) -> Option<u64> {
    line.split_once(" passed")?.0.rsplit(' ').next()?.parse().ok()
}
