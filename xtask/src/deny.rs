//! `cargo xtask deny`: licences, advisories, duplicates and sources of the dependencies.
//!
//! Apart from `test` unless cargo-deny is installed: it fetches the advisory database, so its
//! verdict can change while the code does not.

use anyhow::{Result, bail};

use crate::sh::{self, Program};
use crate::workspace::Workspace;

/// True when cargo-deny can be run.
pub(crate) fn is_installed() -> bool {
    sh::has_program("cargo-deny")
}

/// Runs cargo-deny with the configuration in `deny.toml`.
///
/// # Errors
/// cargo-deny is not installed or finds something.
pub(crate) fn run() -> Result<()> {
    if !is_installed() {
        bail!("cargo-deny is not installed: run `cargo install --locked cargo-deny`");
    }
    let workspace = Workspace::load()?;
    Program::cargo(&workspace.root, "deny --workspace check").run()
}
