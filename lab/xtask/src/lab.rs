//! Runs `rxo-lab` in release, for `xtask` commands that only pass their arguments to it.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Runs `rxo-lab` with `arguments`, built with cargo's options `features`, and returns its exit code. Only
/// `rxo-lab` writes to standard output.
///
/// # Errors
/// If cargo cannot be run.
pub(crate) fn run(features: &str, command: &str, arguments: &[String]) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--release", "--package", "rxo-lab"])
        .args(features.split_whitespace())
        .args(["--", command])
        .args(arguments)
        .current_dir(&workspace.root)
        .status()
        .context("cannot run cargo")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
