//! Pure functions that apply the table to a graph and return the violations as lines.

use super::table::{FOR_TESTS, IMPORTED_BY_NOBODY, LABORATORY, Layer, NEVER};
use crate::workspace::{Dependency, Kind, Package};

/// The file to edit to resolve most violations.
const TABLE: &str = "lab/xtask/src/layers/table.rs";

/// The page whose table has a row for each external dependency, with its reason.
pub(crate) const REASONS: &str = "docs/dependencies.md";

/// Returns the flaws of the table itself: an edge that does not point down, has no reason, or leads to no
/// row.
pub(crate) fn flaws(layers: &[Layer]) -> Vec<String> {
    let mut flaws = Vec::new();
    for layer in layers {
        for (target, reason) in layer.imports {
            let edge = format!("the table's edge {} -> {target}", layer.name);
            if reason.is_empty() {
                flaws.push(format!("{edge} has no reason"));
            }
            match row(layers, target) {
                None => flaws.push(format!("{edge} leads to a crate without a row")),
                Some(below) if below.level == layer.level => flaws.push(format!(
                    "{edge} stays on level {}: crates of one level do not know each other",
                    layer.level
                )),
                Some(below) if below.level > layer.level => flaws.push(format!(
                    "{edge} points up, from level {} to {}",
                    layer.level, below.level
                )),
                Some(_) => {}
            }
        }
    }
    flaws
}

/// Returns a complaint for every dependency that the table does not allow, and for every row without a use.
pub(crate) fn violations(packages: &[Package], layers: &[Layer], reasons: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_of_laboratory = |name: &str| {
        packages.iter().any(|package| package.name == name && is_in_laboratory(package))
    };
    for package in packages {
        let Some(layer) = row(layers, &package.name) else {
            found.push(format!("{} has no row: give it its level in {TABLE}", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            found.extend(never(package, dependency));
            if dependency.kind == Kind::Normal
                && is_of_laboratory(&dependency.name)
                && !is_in_laboratory(package)
            {
                found.push(format!(
                    "{} imports {}: nothing depends on the laboratory, tests aside",
                    package.name, dependency.name
                ));
            }
            found.extend(match (dependency.is_member, dependency.kind) {
                (true, Kind::Normal) => import(layer, dependency, layers),
                (true, Kind::Dev) => import_for_tests(layer, dependency, layers),
                (false, Kind::Normal) => outside(layer, dependency, reasons),
                (false, Kind::Dev) => None,
            });
        }
        found.extend(unused(layer, package));
    }
    found
}

fn is_in_laboratory(package: &Package) -> bool {
    package.folder.parent().is_some_and(|folder| folder.ends_with(LABORATORY))
}

/// Returns a complaint if the manifest does not inherit the workspace's lints, without which no rule on the
/// code applies.
pub(crate) fn lints_violation(name: &str, manifest: &str) -> Option<String> {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]");
    let inherits = lines.nth(1).is_some_and(|line| line == "workspace = true");
    (!inherits).then(|| {
        format!("{name} does not inherit the lints: add `[lints] workspace = true` to its manifest")
    })
}

fn never(package: &Package, dependency: &Dependency) -> Option<String> {
    let (from, to, reason) =
        NEVER.iter().find(|(from, to, _)| *from == package.name && *to == dependency.name)?;
    Some(format!("{from} must never import {to}: {reason}"))
}

fn import(layer: &Layer, dependency: &Dependency, layers: &[Layer]) -> Option<String> {
    let edge = format!("{} imports {}", layer.name, dependency.name);
    let listed = layer.imports.iter().any(|(target, _)| *target == dependency.name);
    judge(layer, dependency, layers, &edge).or_else(|| {
        (!listed).then(|| {
            format!("{edge}, which is not in the table: give the edge a reason in {TABLE}")
        })
    })
}

/// Returns a complaint if the tests of `layer` may not use `dependency`. They may use the imports of the
/// crate itself, crates made for tests, and every lower crate.
fn import_for_tests(layer: &Layer, dependency: &Dependency, layers: &[Layer]) -> Option<String> {
    if FOR_TESTS.iter().any(|(name, _)| *name == dependency.name) {
        return None;
    }
    let edge = format!("the tests of {} import {}", layer.name, dependency.name);
    judge(layer, dependency, layers, &edge)
}

/// Checks the direction of an edge; normal and dev dependencies alike.
fn judge(layer: &Layer, dependency: &Dependency, layers: &[Layer], edge: &str) -> Option<String> {
    if IMPORTED_BY_NOBODY.contains(&dependency.name.as_str()) {
        return Some(format!("{edge}, which nobody imports"));
    }
    let Some(target) = row(layers, &dependency.name) else {
        return Some(format!("{edge}, which has no row in {TABLE}"));
    };
    match target.level.cmp(&layer.level) {
        std::cmp::Ordering::Less => None,
        std::cmp::Ordering::Equal => Some(format!(
            "{edge}: both are on level {}, and crates of one level do not know each other",
            layer.level
        )),
        std::cmp::Ordering::Greater => Some(format!(
            "{edge}: imports point down, and this one goes from level {} to {}",
            layer.level, target.level
        )),
    }
}

/// Returns a complaint if a pure crate has an external dependency without a row in [`REASONS`] that names the
/// crate.
fn outside(layer: &Layer, dependency: &Dependency, reasons: &str) -> Option<String> {
    let (user, used) = (format!("`{}`", layer.name), format!("`{}`", dependency.name));
    let begin = format!("| {used} |");
    let is_named = reasons.lines().any(|line| line.starts_with(&begin) && line.contains(&user));
    (layer.is_pure && !is_named).then(|| {
        format!(
            "{} is pure and takes {} from outside: a row of {REASONS} for {used} that names {user} \
             must say why",
            layer.name, dependency.name
        )
    })
}

/// Returns complaints about permissions that no crate uses. They would allow an import later without a
/// review.
fn unused(layer: &Layer, package: &Package) -> Vec<String> {
    let is_used =
        |name: &str| package.dependencies.iter().any(|d| d.name == name && d.kind == Kind::Normal);
    let unused = layer.imports.iter().filter(|(target, _)| !is_used(target));
    let line = |(target, _): &(&str, &str)| {
        format!("{} does not import {target} any more: remove the edge from {TABLE}", layer.name)
    };
    unused.map(line).collect()
}

fn row<'a>(layers: &'a [Layer], name: &str) -> Option<&'a Layer> {
    layers.iter().find(|layer| layer.name == name)
}

#[cfg(test)]
mod tests;
