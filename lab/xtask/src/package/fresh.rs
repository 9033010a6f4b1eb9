//! Makes a new project that adds packages, as a first user would.

use std::fs;

use anyhow::{Result, ensure};

use super::alone::Alone;
use crate::sh::Program;

/// Source of a program that uses the packages.
const MAIN: &str = include_str!("fresh_main.rs");

/// The manifest that `cargo new` writes, with an empty `[workspace]` so that it is separate from the
/// workspace around it.
const NEW: &str = "[package]\nname = \"fresh\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                   [dependencies]\n\n[workspace]\n\n";

/// Makes the project, adds `rxo-coalesce` and `rxo-frame`, and runs it.
pub(super) fn check(alone: &Alone) -> Result<()> {
    let folder = alone.packages.join("fresh");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/main.rs"), MAIN)?;
    fs::write(folder.join("Cargo.toml"), format!("{NEW}{}", alone.patches("../alone/")))?;
    for name in ["rxo-coalesce", "rxo-frame"] {
        let version = alone.version_of(name)?;
        let add = format!("add --offline --quiet --path ../alone/{name}-{version}");
        Program::cargo(&folder, &add).run()?;
    }
    fs::copy(alone.folder.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let said = Program::cargo(&folder, "run --offline --quiet").output()?;
    ensure!(said.trim() == "1 of 4 frames left: 4 segments", "the new project said {said:?}");
    Ok(())
}
