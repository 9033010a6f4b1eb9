//! Checks the dependencies of a crate without its default features.
//!
//! An optional dependency can return through another crate, which no single manifest shows. Therefore this
//! module reads cargo's whole dependency tree. [`violations`] is pure; [`check`] runs cargo.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::sh::Program;

/// Checks every crate in `table`, and returns the violations.
///
/// # Errors
/// If cargo cannot resolve the dependencies.
pub(super) fn check(root: &Path, table: &[(&str, &str, &str)]) -> Result<Vec<String>> {
    let crates: BTreeSet<&str> = table.iter().map(|(name, ..)| *name).collect();
    let mut found = Vec::new();
    for name in crates {
        let arguments = format!("tree -p {name} --no-default-features -e normal --prefix none");
        let tree = Program::cargo(root, &arguments).output()?;
        found.extend(violations(name, &tree, table));
    }
    Ok(found)
}

/// Returns a complaint for each row of `table` that the dependency tree of the crate `name` violates. Each
/// line of the tree begins with a package name.
fn violations(name: &str, tree: &str, table: &[(&str, &str, &str)]) -> Vec<String> {
    let brought: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    let rows = table.iter().filter(|(of, what, _)| *of == name && brought.contains(what));
    let line = |(_, what, reason): &(&str, &str, &str)| {
        format!("{name} without default features brings {what}: {reason}")
    };
    rows.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::violations;

    const TABLE: &[(&str, &str, &str)] =
        &[("rxo", "flate2", "captures do"), ("rxo-device", "ruzstd", "captures do")];

    #[test]
    fn what_comes_by_way_of_another_crate_is_found() {
        let tree = "rxo v0.1.0 (/here)\nrxo-capture v0.1.0 (/here)\nflate2 v1.1.2\nruzstd v0.9.0\n";
        let line = "rxo without default features brings flate2: captures do";
        assert_eq!(violations("rxo", tree, TABLE), [line]);
    }

    #[test]
    fn a_longer_name_is_another_crate() {
        assert!(violations("rxo", "rxo v0.1.0\nflate2-more v1.0.0\n", TABLE).is_empty());
    }
}
