//! Checks the fields that a registry requires of a manifest. Cargo would only warn, or refuse during the
//! publication.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::sh::Program;
use crate::workspace::{Package, Workspace};

/// Fields that must not be empty.
const FIELDS: &[&str] =
    &["description", "repository", "license", "readme", "rust_version", "keywords", "categories"];
const LICENCES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// Checks the manifests of `libraries`.
///
/// # Errors
/// A manifest lacks a field, a licence, or the version of a dependency inside the workspace.
pub(super) fn check(workspace: &Workspace, libraries: &[&Package]) -> Result<()> {
    let text = Program::cargo(&workspace.root, "metadata --no-deps --format-version 1").output()?;
    let json: Value = serde_json::from_str(&text)?;
    let mut missing = Vec::new();
    for package in libraries {
        let all = json["packages"].as_array().context("packages")?;
        let manifest = all.iter().find(|one| one["name"] == package.name.as_str());
        missing.extend(lacks(manifest.context("a package of the workspace")?));
        let licences =
            LICENCES.iter().filter(|file| fs::metadata(package.folder.join(file)).is_err());
        missing.extend(licences.map(|file| format!("{}: {file}", package.name)));
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("manifests lack what a registry asks for:\n{}", missing.join("\n"))
}

/// Returns the required fields that a manifest does not have.
fn lacks(manifest: &Value) -> Vec<String> {
    let name = manifest["name"].as_str().unwrap_or_default();
    let is_empty = |field: &&&str| match &manifest[**field] {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    let fields = FIELDS.iter().filter(is_empty).map(|field| format!("{name}: {field}"));
    let dependencies = manifest["dependencies"].as_array().into_iter().flatten();
    let unversioned = dependencies
        .filter(|one| one["path"].is_string() && one["kind"] != "dev" && one["req"] == "*")
        .map(|one| format!("{name}: the version of {}", one["name"].as_str().unwrap_or_default()));
    fields.chain(unversioned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_manifest_lacks_is_named() {
        let manifest = serde_json::json!({
            "name": "a", "description": "d", "repository": "r", "license": "MIT", "readme": "R",
            "rust_version": "1.95", "keywords": [], "categories": ["c"],
            "dependencies": [
                {"name": "b", "path": "/b", "req": "*", "kind": null},
                {"name": "c", "path": "/c", "req": "*", "kind": "dev"}]});
        assert_eq!(lacks(&manifest), ["a: keywords", "a: the version of b"]);
    }
}
