//! Wheels of the Python package, and its source distribution, made by maturin.
//!
//! A wheel works on every Linux whose C library is at least as old as its tag says: `manylinux` for glibc,
//! `musllinux` for musl. Zig, which comes as a Python package, links against the old glibc.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::{Architecture, Made, Place, sums};
use crate::venv::Venv;
use crate::{apt, target};

/// Upper limit of the size of a wheel, in bytes.
const MOST_BYTES: u64 = 5_000_000;
/// Packages that build wheels.
const TOOLS: [&str; 2] = ["maturin==1.16.0", "ziglang==0.17.1"];
/// Files that every wheel must contain: the licences, and the types.
const INSIDE: [&str; 4] =
    ["/licenses/LICENSE-APACHE", "/licenses/LICENSE-MIT", "rxo/py.typed", "rxo/_rxo.pyi"];

/// A kind of wheel, by its C library.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The tag: the oldest C library with which the wheel works.
    tag: &'static str,
    /// The last part of the compiler's target triple.
    libc: &'static str,
}

/// All kinds of wheels.
pub(crate) const KINDS: &[Kind] = &[
    Kind { name: "manylinux", tag: "manylinux_2_17", libc: "gnu" },
    Kind { name: "musllinux", tag: "musllinux_1_2", libc: "musl" },
];

/// Returns the folder of the wheels.
pub(crate) fn folder(place: &Place) -> std::path::PathBuf {
    place.target.join("wheels")
}

/// Makes the wheels of these kinds for the architectures, and the source distribution. Returns all files in the folder.
///
/// # Errors
/// Python or a target is missing, a build fails, a wheel is too large, or lacks a file.
pub(crate) fn make(
    place: &Place,
    kinds: &[&Kind],
    architectures: &[&'static Architecture],
) -> Result<Vec<Made>> {
    apt::ensure(&[apt::PYTHON])?;
    let (folder, package) = (folder(place), place.root.join("py"));
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    }
    let venv = Venv::create(place.target.join("wheel-tools"), &package, &[])?;
    venv.pip(&TOOLS)?;
    let out = folder.to_string_lossy().into_owned();
    for architecture in architectures {
        for kind in kinds {
            let triple = format!("{}-unknown-linux-{}", architecture.name, kind.libc);
            if !target::is_there(&place.root, &triple)? {
                bail!("the target {triple} is not installed: run `rustup target add {triple}`");
            }
            wheel(place, &venv, (&triple, kind.tag), &out)?;
        }
    }
    venv.python(["-m", "maturin", "sdist", "--quiet", "--out", &out]).run_aside()?;
    let made = sums(&folder)?;
    for one in made.iter().filter(|one| one.name.ends_with(".whl")) {
        check(&venv, &folder.join(&one.name), one.bytes)?;
    }
    Ok(made)
}

fn wheel(place: &Place, venv: &Venv, (triple, tag): (&str, &str), out: &str) -> Result<()> {
    let target = place.target.to_string_lossy();
    let build = ["-m", "maturin", "build", "--quiet", "--locked", "--profile", "packed", "--zig"];
    let to = ["--target", triple, "--compatibility", tag, "--out", out, "--target-dir", &target];
    venv.python(build.iter().chain(&to))
        // Maturin finds Zig by the Python that stands first.
        .env("PATH", &venv.path())
        .env("SOURCE_DATE_EPOCH", &place.epoch_s.to_string())
        .run_aside()
}

/// Checks that a wheel is small enough, and has the files that users need.
fn check(venv: &Venv, wheel: &Path, bytes: u64) -> Result<()> {
    let name = wheel.display();
    ensure!(bytes < MOST_BYTES, "{name} has {bytes} bytes, and may have {MOST_BYTES}");
    let listing = venv.python(["-m", "zipfile", "--list", &wheel.to_string_lossy()]).output()?;
    for file in INSIDE {
        ensure!(listing.contains(file), "{name} lacks {file}:\n{listing}");
    }
    Ok(())
}
