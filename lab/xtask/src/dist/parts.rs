//! The crates that are linked into the program, as cargo lists them.
//!
//! `cargo tree` lists them with only the features of this program; `cargo metadata` has their descriptions
//! and licences, and the lock file has the checksums of their packages. Macros and build scripts are not in
//! the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Architecture, Place};
use crate::sh::Program;

/// Name and version of a crate.
pub(super) type Id = (String, String);

/// A crate in the program.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) id: Id,
    pub(super) license: String,
    pub(super) description: String,
    /// URL of its sources; empty if its manifest has none.
    pub(super) repository: String,
    /// SHA-256 of its package in the registry; `None` for a crate of this workspace.
    pub(super) sha256: Option<String>,
    /// Its folder on this machine.
    pub(super) folder: PathBuf,
    /// Its direct dependencies.
    pub(super) needs: Vec<Id>,
}

/// Returns all crates in the program, sorted by name and version.
///
/// # Errors
/// Cargo fails, or its output has an unknown form.
pub(super) fn list(place: &Place, architecture: &Architecture) -> Result<Vec<Part>> {
    let triple = architecture.triple();
    let tree = format!(
        "tree --locked -p rxo-cli -e normal,no-proc-macro --target {triple} --prefix depth"
    );
    let edges = edges(&Program::cargo(&place.root, &tree).output()?)?;
    let text = Program::cargo(&place.root, "metadata --locked --format-version 1").output()?;
    let metadata: Value = serde_json::from_str(&text)?;
    let lock = fs::read_to_string(place.root.join("Cargo.lock")).context("Cargo.lock")?;
    let sums = sums(&lock);
    let packages = metadata["packages"].as_array().context("packages")?;
    let known: BTreeMap<Id, &Value> = packages.iter().map(|one| (id_of(one), one)).collect();
    let part = |(id, needs): (Id, BTreeSet<Id>)| {
        let package = known.get(&id).with_context(|| format!("no package {} {}", id.0, id.1))?;
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let manifest = PathBuf::from(text("manifest_path"));
        Ok(Part {
            sha256: sums.get(&id).cloned(),
            id,
            // Old manifests separate licences with a slash.
            license: text("license").replace('/', " OR "),
            description: text("description").split_whitespace().collect::<Vec<_>>().join(" "),
            repository: text("repository"),
            folder: manifest.parent().context("a manifest is in a folder")?.to_owned(),
            needs: needs.into_iter().collect(),
        })
    };
    edges.into_iter().map(part).collect()
}

fn id_of(package: &Value) -> Id {
    let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
    (text("name"), text("version"))
}

/// Returns the dependencies of each crate. A line has a depth, a name and a version; a crate that has
/// appeared before is listed without its dependencies.
fn edges(tree: &str) -> Result<BTreeMap<Id, BTreeSet<Id>>> {
    let mut edges: BTreeMap<Id, BTreeSet<Id>> = BTreeMap::new();
    let mut path: Vec<Id> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let id = || {
            let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (depth, rest) = line.split_at(digits);
            let mut words = rest.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            Some((depth.parse::<usize>().ok()?, (name.to_owned(), version.to_owned())))
        };
        let (depth, id) = id().with_context(|| format!("cargo tree says {line:?}"))?;
        path.truncate(depth);
        if let Some(above) = path.last() {
            edges.entry(above.clone()).or_default().insert(id.clone());
        }
        edges.entry(id.clone()).or_default();
        path.push(id);
    }
    Ok(edges)
}

/// Returns the checksums of the packages in a lock file.
fn sums(lock: &str) -> BTreeMap<Id, String> {
    let package = |text: &str| {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Id {
        (name.to_owned(), "1.0.0".to_owned())
    }

    #[test]
    fn the_tree_becomes_edges() {
        let tree = "0a v1.0.0 (/w/a)\n1b v1.0.0\n2c v1.0.0\n1c v1.0.0 (*)\n";
        let edges = edges(tree).unwrap();
        let needs = |name: &str| edges[&id(name)].iter().cloned().collect::<Vec<_>>();
        assert_eq!(needs("a"), [id("b"), id("c")]);
        assert_eq!((needs("b"), needs("c")), (vec![id("c")], vec![]));
        assert!(super::edges("1b").is_err());
    }

    #[test]
    fn sums_are_read_from_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"0f\"\n\n\
                    [[package]]\nname = \"b\"\nversion = \"1.0.0\"\n";
        assert_eq!(sums(lock), BTreeMap::from([(id("a"), "0f".to_owned())]));
    }
}
