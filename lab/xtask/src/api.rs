//! The public interface of every library crate, one line an item, kept in `docs/api/`.
//!
//! A change of the interface is thus a diff that its reviewer sees. The lines come from rustdoc's JSON, which
//! the pinned stable compiler writes only with `RUSTC_BOOTSTRAP`; `public-api` is pinned to that JSON format.
//! All features are on, because programs can use the items that a feature adds; derived impls are left out.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use public_api::Builder;

use crate::sh::{CHECKED, Program};
use crate::workspace::{Package, Workspace};

/// `cargo xtask api`: rewrites the listings.
///
/// # Errors
/// A crate has no documentation, or a file cannot be written.
pub(crate) fn write() -> Result<()> {
    let workspace = Workspace::load()?;
    fs::create_dir_all(folder(&workspace))?;
    for package in workspace.libraries() {
        let (now, kept_in) = (listing(&workspace, package)?, kept_in(&workspace, package));
        if fs::read_to_string(&kept_in).ok().as_ref() != Some(&now) {
            fs::write(&kept_in, now).with_context(|| format!("{}", kept_in.display()))?;
            println!("{} is written anew", kept_in.display());
        }
    }
    Ok(())
}

/// Compares the interface of every library crate with its listing in `docs/api/`.
///
/// # Errors
/// A listing differs; the error message contains the difference.
pub(crate) fn check() -> Result<()> {
    let workspace = Workspace::load()?;
    let mut changes = String::new();
    for package in workspace.libraries() {
        let kept = fs::read_to_string(kept_in(&workspace, package)).unwrap_or_default();
        changes += &diff(&package.name, &kept, &listing(&workspace, package)?);
    }
    if changes.is_empty() {
        return Ok(());
    }
    bail!("the public interface has changed; `cargo xtask api` keeps it:\n{changes}")
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.root.join("docs/api")
}

fn kept_in(workspace: &Workspace, package: &Package) -> PathBuf {
    folder(workspace).join(format!("{}.txt", package.name))
}

/// Returns the public items of `package`, one a line, sorted as `public-api` sorts them.
fn listing(workspace: &Workspace, package: &Package) -> Result<String> {
    read(&document(&workspace.root, &workspace.target, &package.name, "")?)
}

/// Documents the library `name` of the workspace in `root` as JSON, with all its features and further `flags`
/// of rustdoc. Returns the path of the JSON file, below `target`.
///
/// # Errors
/// The library does not build.
pub(crate) fn document(root: &Path, target: &Path, name: &str, flags: &str) -> Result<PathBuf> {
    let json =
        format!("rustdoc {CHECKED} -p {name} --lib --all-features --quiet -- -Zunstable-options");
    Program::cargo(root, &format!("{json} --output-format json --cap-lints allow {flags}"))
        .linted()
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", &target.to_string_lossy())
        .output()?;
    Ok(target.join(format!("doc/{}.json", name.replace('-', "_"))))
}

fn read(json: &Path) -> Result<String> {
    let api = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("cannot read {}", json.display()))?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

/// Returns the lines that are in only one of the two listings, with `-` or `+` in front; empty if they are
/// equal.
fn diff(name: &str, kept: &str, now: &str) -> String {
    let lacks = |lines: &str, line: &str| !lines.lines().any(|other| other == line);
    let gone = kept.lines().filter(|line| lacks(now, line)).map(|line| format!("- {line}\n"));
    let new = now.lines().filter(|line| lacks(kept, line)).map(|line| format!("+ {line}\n"));
    let lines: String = gone.chain(new).collect();
    if lines.is_empty() { lines } else { format!("{name}\n{lines}") }
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn a_change_is_shown_as_a_diff() {
        let (kept, now) = ("pub fn a()\npub fn b()\n", "pub fn a()\npub fn b(u8)\n");
        assert_eq!(diff("rxo", kept, now), "rxo\n- pub fn b()\n+ pub fn b(u8)\n");
        assert_eq!(diff("rxo", now, now), "");
    }
}
