//! `cargo xtask layers`: checks the workspace's dependencies and its uses of `unsafe` against the table.
//!
//! `table` has the permissions as data; `rules` checks a graph (pure, so that tests can use made-up graphs).
//! `lean` checks the dependencies without default features, `unsafety` the source text, `tracked` the files
//! in git, `circles` the modules of a crate. This file only collects their inputs and prints their results.

mod circles;
mod lean;
mod lexer;
mod rules;
mod table;
mod tracked;
mod unsafety;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::files;
use crate::workspace::{Package, Workspace};

/// Checks every crate of the workspace.
///
/// # Errors
/// At least one rule is broken; each violation has been printed as one line.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let mut violations = rules::flaws(table::LAYERS);
    let reasons = read(&workspace.root.join(rules::REASONS))?;
    violations.extend(rules::violations(&workspace.packages, table::LAYERS, &reasons));
    violations.extend(lean::check(&workspace.root, table::LEAN)?);
    violations.extend(tracked::check(&workspace.root)?);
    let mut files = 0;
    for package in &workspace.packages {
        let manifest = read(&package.folder.join("Cargo.toml"))?;
        violations.extend(rules::lints_violation(&package.name, &manifest));
        violations.extend(circles_of(package)?);
        for path in files::below(&package.folder, "rs")? {
            files += 1;
            let inside = path.strip_prefix(&package.folder).unwrap_or(&path);
            let source = read(&path)?;
            violations.extend(unsafety::violations(&package.name, inside, &source, table::UNSAFE));
        }
    }
    if violations.is_empty() {
        let crates = workspace.packages.len();
        println!("layers: {crates} crates and {files} source files keep to the table");
        return Ok(());
    }
    for violation in &violations {
        println!("layers: {violation}");
    }
    bail!("{} violations; lab/xtask/src/layers/table.rs has who may import whom", violations.len())
}

/// Checks `package` for circles between its top-level modules.
fn circles_of(package: &Package) -> Result<Vec<String>> {
    let folder = package.folder.join("src");
    // A fuzz target or an example may have no `src`.
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let paths = files::below(&folder, "rs")?;
    let sources: Vec<String> = paths.iter().map(|path| read(path)).collect::<Result<_>>()?;
    let inside = paths.iter().map(|path| path.strip_prefix(&folder).unwrap_or(path));
    let files: Vec<_> = inside.zip(sources.iter().map(String::as_str)).collect();
    Ok(circles::violations(&package.name, &circles::imports(&files), table::CIRCLES))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
