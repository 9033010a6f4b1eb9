//! `cargo xtask package`: checks the crates as their users download them.
//!
//! Packs every library crate, unpacks it elsewhere, and builds it there from the packed files alone;
//! dependencies inside the workspace are the other packages. Then runs the examples of its documentation, and
//! adds packages to a new project, like `cargo add`. Nothing is published.
//!
//! * `metadata`: the fields that the registry requires.
//! * `alone`: the folder of unpacked packages.
//! * `fresh`: the new project.
//! * `order`: the order of publication.

mod alone;
mod fresh;
mod metadata;
mod order;

use anyhow::{Result, bail};

use self::alone::Alone;
use crate::workspace::{Package, Workspace};

/// The packages that a short run builds: those without the standard library, the base of all others.
const PURE: &[&str] = &["rxo-wire", "rxo-frame", "rxo-coalesce", "rxo-ack", "rxo-vnet"];

/// Runs `cargo xtask package` with `arguments`.
///
/// # Errors
/// As of [`run`] and of `order`; or an argument is unknown.
pub(crate) fn command(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => run(true),
        [flag] if flag == "--publish-order" => order::run(),
        [other, ..] => bail!(crate::UsageError(format!(
            "unknown argument {other:?} of package; there is --publish-order"
        ))),
    }
}

/// Checks that all packages can be packed, then builds and tests all of them (`all`) or only [`PURE`].
///
/// # Errors
/// A manifest lacks a field that the registry requires, a package does not build, or an example fails.
pub(crate) fn run(all: bool) -> Result<()> {
    let workspace = Workspace::load()?;
    let libraries: Vec<&Package> = workspace.libraries().collect();
    metadata::check(&workspace, &libraries)?;
    let alone = Alone::unpack(&workspace, &libraries)?;
    let is_chosen = |one: &&&Package| all || PURE.contains(&one.name.as_str());
    let chosen: Vec<&Package> = libraries.iter().filter(is_chosen).copied().collect();
    alone.build(&chosen)?;
    chosen.iter().try_for_each(|package| alone.check_bare(package))?;
    fresh::check(&alone)?;
    println!("{} packages in {}", libraries.len(), alone.packages.display());
    Ok(())
}
