//! Tests beside a program that is no part of Rust: each stands in a test target of its own, and its
//! program is a system package.
//!
//! Whether it can come here is decided once, so that what did not run is a list that somebody sees.

use anyhow::Result;

use super::report::Report;
use super::steps::Scene;
use crate::apt::{self, Package};
use crate::sh;

/// A test target that needs the program of a package.
struct Tool {
    target: &'static str,
    package: Package,
    /// True if it is only unpacked, because its installation would start a service.
    is_unpacked: bool,
}

const TOOLS: [Tool; 3] = [
    Tool { target: "browser", package: apt::CHROMIUM, is_unpacked: false },
    Tool { target: "promtool", package: apt::PROMTOOL, is_unpacked: true },
    Tool { target: "tshark", package: apt::TSHARK, is_unpacked: false },
];

impl Tool {
    /// Gets the package, unless it is there. Returns the `PATH` that has its program; `None` if every one has.
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

/// True when the test target of that name needs a package.
pub(super) fn needs_tool(target: &str) -> bool {
    TOOLS.iter().any(|tool| tool.target == target)
}

/// Runs each of them beside its program.
///
/// # Errors
/// A test fails; or a package cannot come here and nobody would read that.
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
