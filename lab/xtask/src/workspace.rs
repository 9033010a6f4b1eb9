//! The workspace as `cargo metadata` describes it: packages, their dependencies and test targets.
//!
//! No other module reads that JSON. The result is plain values, so that tests can check the rules of `layers`
//! on made-up graphs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::sh::Program;

/// The table of the manifest that contains a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `[dependencies]` and `[build-dependencies]`: needed to build the crate.
    Normal,
    /// `[dev-dependencies]`: needed by its tests, examples and benches.
    Dev,
}

/// An entry in a manifest's dependency tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// `true` if it is a crate of this workspace.
    pub(crate) is_member: bool,
}

/// A crate of this workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// `true` if its manifest permits publishing: a library on which others may depend.
    pub(crate) is_published: bool,
    pub(crate) folder: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    /// Names of the integration-test targets (`tests/NAME.rs`).
    pub(crate) tests: Vec<String>,
}

/// The facts about the workspace that the commands need.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

impl Workspace {
    /// Runs `cargo metadata`, which reads only manifests: no network, no compilation.
    pub(crate) fn load() -> Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let arguments = "metadata --no-deps --format-version 1";
        let text = Program::cargo(here, arguments).output()?;
        Self::parse(&text).context("cannot read what `cargo metadata` says")
    }

    /// Returns the crates on which others may depend.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_published)
    }

    fn parse(text: &str) -> Result<Self> {
        let json: Value = serde_json::from_str(text)?;
        let packages = array(&json["packages"]).map(package).collect::<Result<_>>()?;
        Ok(Self {
            root: path(&json["workspace_root"])?,
            target: path(&json["target_directory"])?,
            packages,
        })
    }
}

fn package(json: &Value) -> Result<Package> {
    let manifest = path(&json["manifest_path"])?;
    let is_test = |target: &&Value| array(&target["kind"]).any(|kind| kind == "test");
    Ok(Package {
        name: text(&json["name"])?,
        version: text(&json["version"])?,
        // An empty list means `publish = false`; no list permits every registry.
        is_published: json["publish"].is_null(),
        folder: manifest.parent().context("a manifest is in a folder")?.to_owned(),
        dependencies: array(&json["dependencies"]).map(dependency).collect::<Result<_>>()?,
        tests: array(&json["targets"])
            .filter(is_test)
            .map(|target| text(&target["name"]))
            .collect::<Result<_>>()?,
    })
}

fn dependency(json: &Value) -> Result<Dependency> {
    Ok(Dependency {
        name: text(&json["name"])?,
        kind: if json["kind"] == "dev" { Kind::Dev } else { Kind::Normal },
        is_member: json["path"].is_string(),
    })
}

fn array(json: &Value) -> impl Iterator<Item = &Value> {
    json.as_array().into_iter().flatten()
}

fn text(json: &Value) -> Result<String> {
    Ok(json.as_str().context("a name is missing")?.to_owned())
}

fn path(json: &Value) -> Result<PathBuf> {
    text(json).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read() {
        let workspace = Workspace::parse(
            r#"{"workspace_root": "/w", "target_directory": "/w/target", "packages": [{
                "name": "a", "version": "0.1.0", "publish": null,
                "manifest_path": "/w/a/Cargo.toml",
                "dependencies": [
                    {"name": "b", "kind": null, "path": "/w/b"},
                    {"name": "cc", "kind": "build"},
                    {"name": "proptest", "kind": "dev"}],
                "targets": [
                    {"name": "a", "kind": ["lib"]},
                    {"name": "live_bulk", "kind": ["test"]}]}]}"#,
        )
        .unwrap();
        let a = &workspace.packages[0];
        assert_eq!(a.folder, Path::new("/w/a"));
        assert_eq!(a.tests, ["live_bulk"]);
        assert_eq!((a.version.as_str(), workspace.libraries().count()), ("0.1.0", 1));
        let seen: Vec<_> =
            a.dependencies.iter().map(|d| (d.name.as_str(), d.kind, d.is_member)).collect();
        assert_eq!(
            seen,
            [
                ("b", Kind::Normal, true),
                ("cc", Kind::Normal, false),
                ("proptest", Kind::Dev, false)
            ]
        );
    }

    #[test]
    fn this_workspace_can_be_asked() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.root.join("Cargo.toml").is_file());
        assert!(workspace.packages.iter().any(|package| package.name == "xtask"));
    }
}
