//! `cargo xtask deny`: licences, duplicates, sources and advisories of the dependencies.
//!
//! Part of `test` only where cargo-deny is installed. Advisories come from a database in the
//! network: without it they cannot be checked, which is said and is no fault of the code.

use anyhow::{Result, bail};

use crate::sh::{self, Program};
use crate::workspace::Workspace;

/// The message of cargo-deny when it cannot get its database.
const NO_DATABASE: &str = "failed to fetch advisory database";

/// The part that could not be checked, if any.
pub(crate) type Unchecked = Option<String>;

/// True when cargo-deny can be run.
pub(crate) fn is_installed() -> bool {
    sh::has_program("cargo-deny")
}

/// The command: fails also when something could not be checked, because it was asked for.
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
/// It finds something.
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
