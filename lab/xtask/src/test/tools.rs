//! Runs the tests that need a third-party program: each is a test target of its own, and its program is a
//! system package.
//!
//! The programs are installed here and not by the tests, so that tests which cannot run appear in one list.

use anyhow::Result;

use super::report::Report;
use super::steps::Scene;
use crate::apt::{self, Package};
use crate::sh;

/// A test target, and the package of the program that it needs.
struct Tool {
    target: &'static str,
    package: Package,
    /// Set if the package is only unpacked, because its installation would start a service.
    is_unpacked: bool,
}

const TOOLS: [Tool; 3] = [
    Tool { target: "browser", package: apt::CHROMIUM, is_unpacked: false },
    Tool { target: "promtool", package: apt::PROMTOOL, is_unpacked: true },
    Tool { target: "tshark", package: apt::TSHARK, is_unpacked: false },
];

impl Tool {
    /// Gets the package if it is missing. Returns the `PATH` that finds its program; `None` if the current
    /// `PATH` does.
    fn get(&self, scene: &Scene) -> Result<Option<String>> {
        if self.package.is_there() || !self.is_unpacked {
            return apt::ensure(&[self.package]).map(|()| None);
        }
        let folder = scene.workspace.target.join("tools").join(self.target);
        let programs = apt::unpack(&self.package, &folder)?;
        let path = std::env::var("PATH").unwrap_or_default();
        Ok(Some(format!("{path}:{}", programs.display())))
    }
}

/// Returns `true` if the test target of that name needs a package.
pub(super) fn needs_tool(target: &str) -> bool {
    TOOLS.iter().any(|tool| tool.target == target)
}

/// Runs the tests of each target whose program is available, and notes the others.
///
/// # Errors
/// A test fails; or, under `CI=true`, a package cannot be installed.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    let mut ran = 0;
    for tool in &TOOLS {
        let target = tool.target;
        match tool.get(scene) {
            Ok(path) => {
                let test = scene.checked("test", &format!("--workspace --test {target}"));
                let test = path.iter().fold(test, |test, path| test.env("PATH", path));
                scene.test(test, report)?;
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
