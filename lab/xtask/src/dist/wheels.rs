//! Wheels of the Python package, and its source distribution, made by maturin.
//!
//! A wheel works on every Linux whose C library is at least as old as its tag says: `manylinux` for glibc,
//! `musllinux` for musl. Zig, which comes as a Python package, links against the old glibc.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::build::replaced_paths;
use super::{Architecture, Made, Place, sums};
use crate::venv::Venv;
use crate::{apt, sh, target};

/// Upper limit of the size of a wheel, in bytes.
const MOST_BYTES: u64 = 5_000_000;
/// Packages that build and check wheels.
const TOOLS: [&str; 3] = ["auditwheel==6.8.2", "maturin==1.16.0", "ziglang==0.17.1"];
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

/// Makes the wheels of these kinds for the architectures, and the source distribution. Returns all files in the folder,
/// and a line for each wheel whose target cannot be installed, with the remedy.
///
/// # Errors
/// Python is missing, a build fails, a wheel fails its check, or no wheel can be made; or, under `CI=true`, a target
/// is missing.
pub(crate) fn make(
    place: &Place,
    kinds: &[&Kind],
    architectures: &[&'static Architecture],
) -> Result<(Vec<Made>, Vec<String>)> {
    apt::ensure(&[apt::PYTHON])?;
    let (folder, package) = (folder(place), place.root.join("py"));
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    }
    let venv = Venv::create(place.target.join("wheel-tools"), &package, &[])?;
    venv.pip(&TOOLS)?;
    let out = folder.to_string_lossy().into_owned();
    let mut not_run = Vec::new();
    for architecture in architectures {
        for kind in kinds {
            let triple = format!("{}-unknown-linux-{}", architecture.name, kind.libc);
            match target::ensure(&place.root, &triple) {
                Ok(()) => wheel(place, &venv, (&triple, kind.tag), &out)?,
                Err(obstacle) if sh::is_ci() => return Err(obstacle),
                Err(obstacle) => {
                    not_run
                        .push(format!("{}_{}: not run: {obstacle}", kind.tag, architecture.name));
                }
            }
        }
    }
    ensure!(not_run.len() < kinds.len() * architectures.len(), not_run.join("\n"));
    venv.python(["-m", "maturin", "sdist", "--out", &out]).run_aside()?;
    let made = sums(&folder)?;
    for one in made.iter().filter(|one| one.name.ends_with(".whl")) {
        check(place, &venv, &folder.join(&one.name), one.bytes)?;
    }
    Ok((made, not_run))
}

fn wheel(place: &Place, venv: &Venv, (triple, tag): (&str, &str), out: &str) -> Result<()> {
    let target = place.target.to_string_lossy();
    let build = ["-m", "maturin", "build", "--quiet", "--locked", "--profile", "packed", "--zig"];
    let to = ["--target", triple, "--compatibility", tag, "--out", out, "--target-dir", &target];
    venv.python(build.iter().chain(&to))
        // Maturin finds Zig by the Python that stands first.
        .env("PATH", &venv.path())
        .env("CARGO_ENCODED_RUSTFLAGS", &replaced_paths(place)?.join("\u{1f}"))
        .env("SOURCE_DATE_EPOCH", &place.epoch_s.to_string())
        .run_aside()
}

/// Fails if a file in the wheel `argv[1]` contains one of the other arguments.
const FIND_PATHS: &str = r#"
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
for name in wheel.namelist():
    for path in sys.argv[2:]:
        if path.encode() in wheel.read(name):
            sys.exit(f"{name} contains {path}")
"#;

/// Checks that a wheel is small enough, has the files that users need, and no path of this machine.
fn check(place: &Place, venv: &Venv, wheel: &Path, bytes: u64) -> Result<()> {
    let paths = [&place.root, &place.target, &place.cargo_home].map(|path| path.as_os_str());
    let find = [OsStr::new("-c"), OsStr::new(FIND_PATHS), wheel.as_os_str()];
    venv.python(find.iter().chain(&paths)).output()?;
    let name = wheel.display();
    ensure!(bytes < MOST_BYTES, "{name} has {bytes} bytes, and may have {MOST_BYTES}");
    let listing = venv.python(["-m", "zipfile", "--list", &wheel.to_string_lossy()]).output()?;
    for file in INSIDE {
        ensure!(listing.contains(file), "{name} lacks {file}:\n{listing}");
    }
    audit(venv, wheel)
}

/// Checks with auditwheel that the library needs the C library of the tag in the wheel's name, and nothing else.
fn audit(venv: &Venv, wheel: &Path) -> Result<()> {
    let path = wheel.to_string_lossy();
    // No folder is searched: auditwheel fails at libraries of this machine that are of another C library.
    let show = ["-m", "auditwheel", "show", "--json", "--ldpaths=", &path];
    let found: Value = serde_json::from_str(&venv.python(show).output()?)?;
    let has_tag = found["sym_tag"].as_str().is_some_and(|tag| path.contains(tag));
    // The name that musl gives itself; auditwheel expects that of Alpine, for which musl takes this one, too.
    let is_libc = |library: &String| library == "libc.so";
    let is_alone = found["external_libs"].as_object().is_some_and(|all| all.keys().all(is_libc));
    ensure!(has_tag && is_alone && found["unsupported_isa"] == false, "{path}: {found}");
    Ok(())
}
