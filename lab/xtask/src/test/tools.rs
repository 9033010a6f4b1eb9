//! Tests beside a program that is no part of Rust: each stands in a test target of its own, and its
//! program is a system package.
//!
//! Whether it can come here is decided once, so that what did not run is a list that somebody sees.

use anyhow::Result;

use super::report::Report;
use super::steps::Scene;
use crate::apt::{self, Package};
use crate::sh;

/// The test targets that need a package, by name.
const TOOLS: &[(&str, Package)] = &[("browser", apt::CHROMIUM), ("tshark", apt::TSHARK)];

/// True when the test target of that name needs a package.
pub(super) fn needs_tool(target: &str) -> bool {
    TOOLS.iter().any(|(name, _)| *name == target)
}

/// Runs each of them beside its program.
///
/// # Errors
/// A test fails; or a package cannot come here and nobody would read that.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    let mut ran = 0;
    for (target, package) in TOOLS {
        match apt::ensure(&[*package]) {
            Ok(()) => {
                scene
                    .test(scene.checked("test", &format!("--workspace --test {target}")), report)?;
                ran += 1;
            }
            Err(obstacle) if sh::is_ci() => return Err(obstacle),
            Err(obstacle) => report.note(format!("the tests `{target}` did not run: {obstacle}")),
        }
    }
    if ran == 0 {
        report.not_run("no program that its tests need is installed".to_owned());
    }
    Ok(())
}
