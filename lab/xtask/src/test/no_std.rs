//! Checks the pure crates for other processors and operating systems.
//!
//! The check for a target needs its core library, which `rustup` installs over the network. Without it, the
//! step only checks that the crates declare `no_std`, and notes that; this is weaker, because a dependency
//! could still need the standard library. Every change is checked for a bare machine of 64 bits and for one
//! of 32, which has no 64-bit atomics; `--all` adds the others, and the facade on systems without drivers.

use std::fs;

use anyhow::{Context, Result, bail};

use super::report::Report;
use super::steps::Scene;
use crate::sh::CHECKED;
use crate::{apt, target};

/// Targets that every change is checked for.
const BARE: &[&str] = &["x86_64-unknown-none", "thumbv7em-none-eabi"];
/// Targets that only `--all` adds.
const OTHERS: &[&str] = &[
    "aarch64-apple-darwin",
    "aarch64-linux-android",
    "aarch64-pc-windows-msvc",
    "aarch64-unknown-none",
    "armv7a-none-eabi",
    "riscv32imac-unknown-none-elf",
    "riscv64gc-unknown-none-elf",
    "s390x-unknown-linux-gnu",
    "wasm32-unknown-unknown",
];
/// Systems for which the project has no drivers.
const WITHOUT_DRIVERS: &[&str] = &["aarch64-apple-darwin", "x86_64-pc-windows-msvc"];
/// Target of the packed programs. Some types of its C library differ from those of glibc.
const OTHER_LIBRARY: &str = "x86_64-unknown-linux-musl";
const CRATES: &[&str] =
    &["rxo-wire", "rxo-frame", "rxo-coalesce", "rxo-ack", "rxo-tcp", "rxo-vnet"];

/// A foreign processor whose tests run under QEMU: target, linker, and emulator.
const FOREIGN: &[(&str, &str, &str)] = &[
    // Big-endian.
    ("s390x-unknown-linux-gnu", "s390x-linux-gnu-gcc", "qemu-s390x -L /usr/s390x-linux-gnu"),
    // 32 bits.
    (
        "armv7-unknown-linux-gnueabihf",
        "arm-linux-gnueabihf-gcc",
        "qemu-arm -L /usr/arm-linux-gnueabihf",
    ),
];
/// Arguments that select the tests for foreign processors. The skipped stories of `rxo-tcp` take 100 of 120 s
/// and cover no other code.
const TESTED: &[&str] = &[
    "-p rxo-wire -p rxo-frame -p rxo-vnet -p rxo-ack -p rxo-coalesce --lib --tests",
    "-p rxo-tcp --lib --test multicast --test no_allocation",
    "-p rxo-tcp --test stories -- \
     --skip robustness:: --skip quiet:: --skip bbr:: --skip network:: --skip buffers::",
];
/// Number of cases for each property test; small, because an emulated processor is thirty times slower.
const CASES: &str = "16";

/// Checks the pure crates for every target, the facade for systems without drivers, and the command with
/// musl.
///
/// # Errors
/// A crate does not build, or does not declare `no_std`.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    let others = if scene.all { OTHERS } else { &[] };
    for target in BARE.iter().chain(others) {
        if has_core(scene, target)? {
            let packages = CRATES.join(" -p ");
            scene.cargo(&format!("check --quiet -p {packages} --target {target}")).run()?;
        } else {
            report.note(missing(target, "only checked that the crates say no_std"));
            CRATES.iter().try_for_each(|name| says_no_std(scene, name))?;
        }
    }
    let without_captures = "check --quiet -p rxo --no-default-features --features driver,host";
    scene.cargo(without_captures).run()?;
    // The core of the facade alone, in which nothing may be left over that only a driver calls.
    scene.cargo("check --quiet -p rxo --no-default-features").linted().run()?;
    if has_core(scene, OTHER_LIBRARY)? {
        scene.cargo(&format!("check --quiet -p rxo-cli --target {OTHER_LIBRARY}")).run()?;
    } else {
        report.note(missing(OTHER_LIBRARY, "the command was not checked with musl"));
    }
    let systems = if scene.all { WITHOUT_DRIVERS } else { &[] };
    for target in systems {
        if has_core(scene, target)? {
            let check = format!("check --quiet -p rxo --no-default-features --target {target}");
            scene.cargo(&check).run()?;
        } else {
            report.note(missing(target, "the facade was not checked there"));
        }
    }
    Ok(())
}

/// Runs the tests of the pure crates on a big-endian processor and on one of 32 bits, both emulated.
///
/// # Errors
/// A test fails, or the emulator cannot be installed.
pub(super) fn run_foreign(scene: &Scene, report: &mut Report) -> Result<()> {
    apt::ensure(&[apt::QEMU_USER])?;
    apt::ensure(&apt::FOREIGN_LINKERS)?;
    let mut ran = 0;
    for (target, linker, runner) in FOREIGN {
        if !has_core(scene, target)? {
            report.note(missing(target, "no test ran there"));
            continue;
        }
        ran += 1;
        let variable = target.to_uppercase().replace('-', "_");
        for tests in TESTED {
            scene
                .cargo(&format!("test {CHECKED} --target {target} {tests}"))
                .env(&format!("CARGO_TARGET_{variable}_LINKER"), linker)
                .env(&format!("CARGO_TARGET_{variable}_RUNNER"), runner)
                .env("PROPTEST_CASES", CASES)
                .run()?;
        }
    }
    if ran == 0 {
        report.not_run("no target that its tests need can be installed".to_owned());
    }
    Ok(())
}

fn missing(target: &str, consequence: &str) -> String {
    format!(
        "the target {target} could not be installed: {consequence}; \
         `rustup target add {target}` makes the full check possible"
    )
}

fn has_core(scene: &Scene, target: &str) -> Result<bool> {
    target::is_there(&scene.workspace.root, target)
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
