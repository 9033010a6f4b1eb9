//! `cargo xtask deny`: checks licences, duplicates, sources and advisories of the dependencies.
//!
//! `cargo xtask test` runs this only where cargo-deny is installed. Advisories come from a database on the
//! network; if it cannot be reached, a note reports that they were not checked, and the check still passes.

use anyhow::{Result, bail};

use crate::sh::{self, Program};
use crate::workspace::Workspace;

/// The message that cargo-deny prints if it cannot get its database.
const NO_DATABASE: &str = "failed to fetch advisory database";

/// The checks that could not run, if any.
pub(crate) type Unchecked = Option<String>;

/// Returns `true` if cargo-deny is installed.
pub(crate) fn is_installed() -> bool {
    sh::has_program("cargo-deny")
}

/// Runs `cargo xtask deny`. Unlike [`check`], it also fails if something could not be checked.
///
/// # Errors
/// cargo-deny is not installed, finds something, or cannot get the advisories.
pub(crate) fn run() -> Result<()> {
    if !is_installed() {
        bail!("cargo-deny is not installed: run `cargo install --locked cargo-deny`");
    }
    check()?.map_or(Ok(()), |unchecked| bail!(unchecked))
}

/// Runs cargo-deny with the configuration in `deny.toml`.
///
/// # Errors
/// cargo-deny finds a violation.
pub(crate) fn check() -> Result<Unchecked> {
    let root = Workspace::load()?.root;
    Program::cargo(&root, "deny --workspace check licenses bans sources").run()?;
    let advisories = Program::cargo(&root, "deny --workspace check advisories");
    let (ended, output) = advisories.output_of_both()?;
    if ended.is_ok() {
        return Ok(None);
    }
    if output.contains(NO_DATABASE) {
        return Ok(Some("advisories were not checked: their database cannot be fetched".into()));
    }
    bail!("{output}\nadvisories: cargo-deny found something")
}
