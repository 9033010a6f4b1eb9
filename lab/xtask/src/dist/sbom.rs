//! The list of parts in the form of CycloneDX 1.5: JSON that scanners read.
//!
//! The document has no serial number, which would be random, so that equal programs have equal lists.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Place;
use super::parts::{Id, Part};
use crate::sh::Program;

/// Returns the document for a program with this SHA-256.
///
/// # Errors
/// If the compiler does not print its version.
pub(super) fn document(place: &Place, parts: &[Part], sha256: &str) -> Result<String> {
    let said = Program::new(&place.root, "rustc", ["--version"]).output()?;
    let compiler = said.split(' ').nth(1).context("rustc says no version")?;
    let document = describe(parts, sha256, &place.date("+%Y-%m-%dT%H:%M:%SZ")?, compiler)?;
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn describe(parts: &[Part], sha256: &str, time: &str, compiler: &str) -> Result<Value> {
    let is_program = |part: &&Part| part.id.0 == PROGRAM;
    let program = parts.iter().find(is_program).context("the program is none of its parts")?;
    let mut root = component(program, "application");
    root["name"] = json!("rxo");
    root["hashes"] = hashes(sha256);
    let standard = json!({
        "type": "library", "bom-ref": STANDARD, "name": "std", "version": compiler, "scope": "required",
        "description": "Rust's standard library, with the C library musl that comes with it",
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    });
    let others = parts.iter().filter(|part| !is_program(part));
    let components = others.map(|part| component(part, "library")).chain([standard]);
    let needs = |part: &Part| {
        let needed: Vec<String> = part.needs.iter().map(reference).collect();
        let standard = is_program(&part).then(|| STANDARD.to_owned());
        json!({"ref": reference(&part.id), "dependsOn": needed.into_iter().chain(standard).collect::<Vec<_>>()})
    };
    let standard = json!({"ref": STANDARD, "dependsOn": []});
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time,
            "tools": {"components": [{"type": "application", "name": "cargo xtask dist"}]},
            "component": root,
        },
        "components": components.collect::<Vec<_>>(),
        "dependencies": parts.iter().map(needs).chain([standard]).collect::<Vec<_>>(),
    }))
}

/// The crate that is the program.
const PROGRAM: &str = "rxo-cli";
const STANDARD: &str = "rust-std";

/// Returns the package URL by which the parts refer to each other.
fn reference((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{version}")
}

fn hashes(sha256: &str) -> Value {
    json!([{"alg": "SHA-256", "content": sha256}])
}

fn component(part: &Part, kind: &str) -> Value {
    let address = reference(&part.id);
    let mut component = json!({
        "type": kind, "bom-ref": address, "name": part.id.0, "version": part.id.1, "scope": "required",
        "description": part.description,
        "licenses": [{"expression": part.license}],
    });
    // Only packages from a registry have a package URL.
    if let Some(sha256) = &part.sha256 {
        component["purl"] = json!(address);
        component["hashes"] = hashes(sha256);
    }
    if !part.repository.is_empty() {
        component["externalReferences"] = json!([{"type": "vcs", "url": part.repository}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, sha256: Option<&str>, needs: &[&str]) -> Part {
        let id = |name: &str| (name.to_owned(), "1.0.0".to_owned());
        Part {
            id: id(name),
            license: "MIT".to_owned(),
            description: "d".to_owned(),
            repository: String::new(),
            sha256: sha256.map(str::to_owned),
            folder: "/".into(),
            needs: needs.iter().map(|name| id(name)).collect(),
        }
    }

    #[test]
    fn every_part_is_listed_once_and_named_where_it_is_needed() {
        let parts = [part("libc", Some("0f"), &[]), part("rxo-cli", None, &["libc"])];
        let document = describe(&parts, "ab", "2026-01-01T00:00:00Z", "1.95.0").unwrap();
        let component = &document["metadata"]["component"];
        assert_eq!((&component["name"], &component["hashes"]), (&json!("rxo"), &hashes("ab")));
        let names: Vec<&Value> =
            document["components"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["libc", "std"]);
        assert_eq!(document["components"][0]["purl"], "pkg:cargo/libc@1.0.0");
        assert_eq!(component.get("purl"), None);
        let needs = &document["dependencies"][1]["dependsOn"];
        assert_eq!(needs, &json!(["pkg:cargo/libc@1.0.0", STANDARD]));
    }

    #[test]
    fn without_the_program_there_is_no_list() {
        assert!(describe(&[part("libc", None, &[])], "ab", "", "").is_err());
    }
}
