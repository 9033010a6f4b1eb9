//! Checks that the pure crates build with the oldest compiler that their manifests promise.
//!
//! They need less than the workspace, because others embed them. Rust 1.89 has the instructions of AVX-512, which
//! `rxo-wire` uses in 67 lines. For 1.88 a build script would have to leave them out, to gain six weeks. Rust 1.85 lacks
//! more: the `let` chains of 20 conditions (1.88), `as_chunks` in 22 places, some of them in constant functions (1.88),
//! safe vector instructions and constant `copy_from_slice` (1.87), and safe functions with `target_feature` (1.86). There
//! each vector instruction would need `unsafe`, which newer compilers report as needless.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::report::Report;
use super::steps::Scene;
use crate::sh::{self, Program};

/// The oldest compiler. Each manifest says `rust-version` without the last number.
const OLDEST: &str = "1.89.0";

const CRATES: &[&str] =
    &["rxo-wire", "rxo-frame", "rxo-coalesce", "rxo-ack", "rxo-tcp", "rxo-vnet", "rxo-virtqueue"];

/// Installs the oldest compiler if it is missing, and checks the crates with it.
///
/// # Errors
/// A manifest promises another version, or a crate does not build.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    let promised = format!("rust-version = \"{}\"", OLDEST.trim_end_matches(".0"));
    for package in scene.workspace.packages.iter().filter(|it| CRATES.contains(&it.name.as_str())) {
        let path = package.folder.join("Cargo.toml");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let says = text.lines().any(|line| line == promised);
        ensure!(says, "{} does not say {promised}, which this step checks", path.display());
    }
    if !sh::has_program("rustup") {
        report.not_run(format!("rustup is not in PATH, which installs Rust {OLDEST}"));
        return Ok(());
    }
    let root = &scene.workspace.root;
    let install = ["toolchain", "install", OLDEST, "--profile", "minimal", "--no-self-update"];
    if let Err(error) = Program::new(root, "rustup", install).run_aside() {
        report.not_run(format!("Rust {OLDEST} could not be installed: {error:#}"));
        return Ok(());
    }
    // Another compiler invalidates what the pinned one has built.
    let target = scene.workspace.target.join("msrv").display().to_string();
    let packages = CRATES.iter().flat_map(|name| ["-p", name]);
    let check = ["run", OLDEST, "cargo", "check", "--quiet", "--target-dir", &target];
    Program::new(root, "rustup", check.into_iter().chain(packages)).run()
}
