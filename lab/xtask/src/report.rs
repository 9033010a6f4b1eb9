//! `cargo xtask report`: runs `lab/report`, which makes tables, figures and pages from the results of
//! `rxo-lab`, in a virtual environment below the target folder.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::apt;
use crate::sh::Program;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// Runs the report with `arguments`; paths among them are relative to the current folder.
///
/// # Errors
/// If Python is missing, a package cannot be installed, or the report fails.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let command = ["-m", "rxo_report"].into_iter().chain(arguments.iter().map(String::as_str));
    let here = std::env::current_dir()?;
    python(&workspace, &here, command)?.run_aside()?;
    Ok(ExitCode::SUCCESS)
}

/// Checks the style of the package, runs its tests, and checks that no page or figure of docs/ is stale. Passes each
/// line that the tests print to `each_line`.
///
/// # Errors
/// If a check fails, or the environment cannot be made.
pub(crate) fn check(workspace: &Workspace, each_line: impl FnMut(&str)) -> Result<()> {
    let folder = workspace.root.join("lab/report");
    let run = |arguments: &[&str]| python(workspace, &folder, arguments.iter().copied());
    run(&["-m", "ruff", "check", "--no-cache", "."])?.run()?;
    run(&["-m", "ruff", "format", "--no-cache", "--check", "."])?.run()?;
    run(&["-m", "pytest", "-q", "-p", "no:cacheprovider"])?.run_reading(each_line)?;
    run(&["-m", "rxo_report", "--check"])?.run()
}

/// Returns Python with `arguments`, in the environment of the report.
fn python<'a>(
    workspace: &Workspace,
    place: &Path,
    arguments: impl Iterator<Item = &'a str>,
) -> Result<Program> {
    apt::ensure(&[apt::PYTHON])?;
    let package = workspace.root.join("lab/report");
    let lock = package.join("requirements.txt");
    let venv = Venv::locked(workspace.target.join("report"), place, &lock)?;
    Ok(venv.python(arguments).env("PYTHONPATH", &package.to_string_lossy()))
}
