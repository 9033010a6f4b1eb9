//! The pure crates without the standard library.
//!
//! Built for a bare machine when its core library can be had. When it cannot (no network), what is
//! left is to read that the crates say `no_std`: weaker, because a dependency could still need the
//! standard library, and said to be.

use std::fs;

use anyhow::{Context, Result, bail};

use super::report::Report;
use super::steps::Scene;
use crate::sh::{self, Program};

const BARE: &str = "x86_64-unknown-none";
const CRATES: &[&str] =
    &["rxo-wire", "rxo-frame", "rxo-coalesce", "rxo-ack", "rxo-tcp", "rxo-vnet"];

/// Builds the pure crates for a machine without an operating system.
///
/// # Errors
/// A crate does not build, or does not say `no_std`.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    if has_bare_core(scene)? {
        let packages = CRATES.join(" -p ");
        return scene.cargo(&format!("build -p {packages} --target {BARE}")).run();
    }
    report.note(format!(
        "the target {BARE} could not be installed: only checked that the crates say no_std; \
         `rustup target add {BARE}` makes the full check possible"
    ));
    CRATES.iter().try_for_each(|name| says_no_std(scene, name))
}

fn has_bare_core(scene: &Scene) -> Result<bool> {
    let sysroot = Program::new(&scene.workspace.root, "rustc", ["--print", "sysroot"]).output()?;
    let library = format!("{}/lib/rustlib/{BARE}/lib", sysroot.trim());
    let is_there = || fs::metadata(&library).is_ok_and(|folder| folder.is_dir());
    if !is_there() && sh::has_program("rustup") {
        let add = Program::new(&scene.workspace.root, "rustup", ["target", "add", BARE]);
        if let Err(error) = add.run() {
            println!("{error:#}");
        }
    }
    Ok(is_there())
}

fn says_no_std(scene: &Scene, name: &str) -> Result<()> {
    let package = scene.workspace.packages.iter().find(|package| package.name == name);
    let package = package.with_context(|| format!("{name} is not in the workspace"))?;
    let library = package.folder.join("src/lib.rs");
    let source = fs::read_to_string(&library)
        .with_context(|| format!("cannot read {}", library.display()))?;
    if source.lines().any(|line| line.trim() == "#![no_std]") {
        return Ok(());
    }
    bail!("{} does not say #![no_std] without a condition", library.display())
}
