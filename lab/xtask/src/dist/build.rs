//! Builds the program and its pages so that the result contains nothing of this machine.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Architecture, Place};
use crate::sh::Program;
use crate::target;

/// The files that a build makes for one architecture.
pub(super) struct Built {
    /// Path of the program.
    pub(super) program: PathBuf,
    /// Folder of the shell completions and of the manual pages.
    pub(super) pages: PathBuf,
}

impl Built {
    /// Builds the program, and generates the pages with a program that runs on this machine.
    pub(super) fn build(place: &Place, architecture: &'static Architecture) -> Result<Self> {
        let here = Architecture::here()?;
        // One build if possible: the pages need nearly everything that the program does.
        let (with_pages, alone) = ("-p rxo-cli -p rxo-pages", "-p rxo-cli");
        compile(place, architecture, if architecture == here { with_pages } else { alone })?;
        if architecture != here {
            compile(place, here, with_pages)?;
        }
        let this = Self::of(place, architecture);
        let pages = &this.pages;
        if pages.exists() {
            fs::remove_dir_all(pages).with_context(|| format!("{}", pages.display()))?;
        }
        let generator = built(place, here, "rxo-pages").to_string_lossy().into_owned();
        Program::new(&place.root, &generator, [pages]).run_aside()?;
        Ok(this)
    }

    /// Returns the paths of the results, even if they are not built yet.
    pub(super) fn of(place: &Place, architecture: &Architecture) -> Self {
        let pages = place.target.join("dist-pages");
        Self { program: built(place, architecture, "rxo"), pages }
    }
}

/// The profile of Cargo.toml for packed programs, which is also the name of its build folder.
const PROFILE: &str = "packed";

fn built(place: &Place, architecture: &Architecture, name: &str) -> PathBuf {
    place.target.join(architecture.triple()).join(PROFILE).join(name)
}

fn compile(place: &Place, architecture: &Architecture, what: &str) -> Result<()> {
    let triple = architecture.triple();
    target::ensure(&place.root, &triple)?;
    let arguments = format!("build --locked --quiet --profile {PROFILE} --target {triple} {what}");
    Program::cargo(&place.root, &arguments)
        .env("CARGO_TARGET_DIR", &place.target.to_string_lossy())
        .env("CARGO_HOME", &place.cargo_home.to_string_lossy())
        .env("CARGO_ENCODED_RUSTFLAGS", &flags(place)?.join("\u{1f}"))
        .env("SOURCE_DATE_EPOCH", &place.epoch_s.to_string())
        .run_aside()
}

/// Returns the compiler flags that replace the paths of this machine and use the linker that comes with the
/// compiler, not the machine's. Symbols are stripped by a flag, because cargo forgets `strip` of the profile
/// for a package with settings of its own.
fn flags(place: &Place) -> Result<Vec<String>> {
    let mut flags = replaced_paths(place)?;
    let linker = ["-Clinker=rust-lld", "-Clinker-flavor=ld.lld", "-Cstrip=symbols"];
    flags.extend(linker.map(str::to_owned));
    Ok(flags)
}

/// Returns the compiler flags that replace the paths of this machine.
pub(super) fn replaced_paths(place: &Place) -> Result<Vec<String>> {
    let mut flags = Vec::new();
    // If several prefixes match, the last applies.
    let mut replace = |from: PathBuf, to: &str| {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    };
    replace(place.root.clone(), "/rxo");
    replace(place.target.clone(), "/target");
    let registries = place.cargo_home.join("registry/src");
    let entries = fs::read_dir(&registries).with_context(|| format!("{}", registries.display()))?;
    for registry in entries {
        replace(registry?.path(), "/registry");
    }
    Ok(flags)
}

/// Returns the folder in which cargo keeps downloads.
pub(crate) fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}
