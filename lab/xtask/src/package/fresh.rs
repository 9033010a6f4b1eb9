//! A new project that adds a package, as its first user would.

use std::fs;

use anyhow::{Result, ensure};

use super::alone::Alone;
use crate::sh::Program;

/// The source of a program that uses the package.
const MAIN: &str = include_str!("fresh_main.rs");

/// The manifest that `cargo new` writes, marked as no part of the workspace around it.
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
