//! `cargo xtask package`: the crates as their users get them.
//!
//! Packs every library crate, unpacks it elsewhere, and builds it there from what the package has alone:
//! dependencies inside the workspace are the other packages. Then runs the examples of its documentation, and adds
//! packages to a new project, as `cargo add` does. Nothing leaves this machine.
//!
//! * `metadata`: what the registry asks for.
//! * `alone`: the folder of unpacked packages.
//! * `fresh`: the new project.

mod alone;
mod fresh;
mod metadata;

use anyhow::Result;

use self::alone::Alone;
use crate::workspace::{Package, Workspace};

/// The packages that a short run builds: those without the standard library, on which the others stand.
const PURE: &[&str] = &["rxo-wire", "rxo-frame", "rxo-coalesce", "rxo-ack", "rxo-vnet"];

/// Checks the packages: all of them with `all`, else that all can be packed, and the [`PURE`] ones.
///
/// # Errors
/// A manifest lacks what the registry asks for, or a package does not build, or an example fails.
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
