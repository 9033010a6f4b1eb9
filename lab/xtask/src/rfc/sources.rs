//! Finds the tests of the workspace and their documentation.
//!
//! A test is a function with `#[test]`, described by its doc comment, or a packetdrill script, described by
//! the comment at its beginning.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::files;
use crate::workspace::Workspace;

/// A test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// Its name: `crate file::function`.
    pub(super) name: String,
    /// Its documentation, as one line.
    pub(super) said: String,
}

/// Returns all tests with documentation.
pub(super) fn tests(workspace: &Workspace) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for package in &workspace.packages {
        for path in files::below(&package.folder, "rs")? {
            let module = format!("{} {}", package.name, module(&path));
            tests.extend(in_rust(&module, &read(&path)?));
        }
        for path in files::below(&package.folder, "pkt")? {
            let inside = path.strip_prefix(&package.folder).unwrap_or(&path);
            let name = format!("{} {}", package.name, inside.display());
            tests.extend(in_script(&name, &read(&path)?));
        }
    }
    Ok(tests)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the last names of the path, which are enough to identify the file.
fn module(path: &Path) -> String {
    let name = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let own = name(path).unwrap_or_default();
    match path.parent().and_then(name) {
        Some(folder) if own == "mod" || own == "tests" => format!("{folder}::{own}"),
        _ => own,
    }
}

fn in_rust(module: &str, source: &str) -> Vec<Test> {
    let mut tests = Vec::new();
    let (mut said, mut is_test, mut is_ignored) = (String::new(), false, false);
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            said += text;
        } else if line == "#[test]" {
            is_test = true;
        } else if line.starts_with("#[ignore") {
            is_ignored = true;
        } else if !line.starts_with("#[") {
            // An ignored test does not run, so it verifies nothing.
            let holds = is_test && !is_ignored && !said.is_empty();
            if let (true, Some(name)) = (holds, function(line)) {
                tests.push(Test { name: format!("{module}::{name}"), said: said.clone() });
            }
            (said, is_test, is_ignored) = (String::new(), false, false);
        }
    }
    tests
}

fn function(line: &str) -> Option<&str> {
    line.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next())
}

fn in_script(name: &str, source: &str) -> Option<Test> {
    let head =
        source.lines().map(str::trim).take_while(|line| line.starts_with("//") || line.is_empty());
    let said: String = head.flat_map(|line| [" ", line.trim_start_matches('/')]).collect();
    (!said.trim().is_empty()).then(|| Test { name: name.to_owned(), said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_over_a_test_counts() {
        let source = "/// RFC 1, section 2\n/// (MUST-3).\n#[test]\nfn one() {\n}\n\n\
                      /// RFC 3\n#[test]\n#[ignore = \"slow\"]\nfn left_out() {}\n\
                      /// RFC 4: a helper.\nfn two() {}\n#[test]\nfn three() {}\n";
        let said = " RFC 1, section 2 (MUST-3).".to_owned();
        assert_eq!(in_rust("a b", source), [Test { name: "a b::one".to_owned(), said }]);
    }

    #[test]
    fn a_script_says_it_at_its_head() {
        let found =
            in_script("x.pkt", "// RFC 1, section 2\n// (MUST-3)\n\n0 socket()\n// RFC 9\n");
        assert_eq!(found.unwrap().said.trim(), "RFC 1, section 2  (MUST-3)");
        assert_eq!(in_script("x.pkt", "0 socket()\n"), None);
    }
}
