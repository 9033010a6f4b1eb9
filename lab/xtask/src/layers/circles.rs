//! Finds circles inside a crate: top-level modules that import each other, directly or through other modules.
//!
//! A crate with a circle cannot be read from top to bottom. The table lists the existing circles, so that
//! none is added and none grows. [`imports`] reads source text, [`circles`] searches a graph, [`violations`]
//! compares with the table; all are pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::lexer;

/// The imports of a crate: each module with the modules that it imports.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// A circle that the table permits: the crate, and its modules in alphabetical order, separated by blanks.
pub(crate) type Known = (&'static str, &'static str);

/// Returns the import graph of a crate from its files: paths below `src`, and their text. Tests are left out.
pub(crate) fn imports<'f>(files: &[(&'f Path, &'f str)]) -> Graph {
    let modules: BTreeSet<&str> = files.iter().filter_map(|(path, _)| top(path)).collect();
    let roots = files.iter().filter(|(path, _)| top(path).is_none());
    let exported: BTreeMap<&str, &str> =
        roots.flat_map(|(_, source)| re_exports(source, &modules)).collect();
    let mut graph = Graph::new();
    for (path, source) in files {
        let Some(module) = top(path) else { continue };
        if is_test(path) {
            continue;
        }
        let own = graph.entry(module.to_owned()).or_default();
        for name in names_of_root(&code(source), depth(path)) {
            // A name at the crate's root is a module, or an item that the root exports from one.
            let target = modules.get(name).or_else(|| exported.get(name));
            own.extend(
                target.filter(|target| **target != module).map(|target| (*target).to_owned()),
            );
        }
    }
    graph
}

/// Returns the top-level module of a file; `None` for the root of a crate and for a program.
fn top(path: &Path) -> Option<&str> {
    let first = path.components().next()?.as_os_str().to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (!matches!(name, "lib" | "main" | "bin" | "tests")).then_some(name)
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")))
}

/// Returns the number of modules from the root to the module of the file at `path`.
fn depth(path: &Path) -> usize {
    path.components().count() - usize::from(path.ends_with("mod.rs"))
}

/// Returns the tokens of `source` without its inline tests.
fn code(source: &str) -> Vec<&str> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let tokens = lexer::tokens(source);
    let mut kept = Vec::with_capacity(tokens.len());
    let mut rest = tokens.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        if rest.starts_with(&TEST) {
            rest = behind_item(&rest[TEST.len()..]);
        } else {
            kept.push(*first);
            rest = behind;
        }
    }
    kept
}

/// Skips an item: up to its semicolon, or to the brace that closes it.
fn behind_item<'t, 's>(tokens: &'t [&'s str]) -> &'t [&'s str] {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            ";" => {}
            _ => continue,
        }
        if depth == 0 {
            return &tokens[at + 1..];
        }
    }
    &[]
}

/// Returns the root's names in `tokens`: those after `crate::`, or after as many `super::` as the module is
/// deep.
fn names_of_root<'s>(tokens: &[&'s str], depth: usize) -> Vec<&'s str> {
    let mut names = Vec::new();
    for at in 0..tokens.len() {
        // `pub(in crate::x)` limits the visibility, and imports nothing.
        let before = at.checked_sub(1).map(|before| tokens[before]);
        if tokens[at] == "crate" && before != Some("in") {
            names.extend(first_names(&tokens[at + 1..]));
        } else if tokens[at] == "super" && before != Some("in") && before != Some(":") {
            let ups =
                tokens[at..].chunks(3).take_while(|part| part == &["super", ":", ":"]).count();
            if ups == depth {
                names.extend(first_names(&tokens[at + 3 * ups - 2..]));
            }
        }
    }
    names
}

/// Returns the first name of each path in the import tree that begins with `::`.
fn first_names<'s>(tokens: &[&'s str]) -> Vec<&'s str> {
    let Some(tree) = tokens.strip_prefix(&[":", ":"]) else { return Vec::new() };
    match tree.first() {
        Some(&"{") => {
            branches(&tree[1..]).into_iter().filter_map(|path| path.first().copied()).collect()
        }
        Some(name) => vec![name],
        None => Vec::new(),
    }
}

/// Returns the branches of an import tree, up to its closing brace.
fn branches<'t, 's>(tokens: &'t [&'s str]) -> Vec<&'t [&'s str]> {
    let (mut depth, mut begin, mut found) = (0_usize, 0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match (*token, depth) {
            ("{", _) => depth += 1,
            (",", 0) => {
                found.push(&tokens[begin..at]);
                begin = at + 1;
            }
            ("}", 0) => {
                found.push(&tokens[begin..at]);
                break;
            }
            ("}", _) => depth -= 1,
            _ => {}
        }
    }
    found
}

/// Returns the names that a root re-exports from its modules, each with its module. Glob imports are not
/// followed.
fn re_exports<'s>(source: &'s str, modules: &BTreeSet<&'s str>) -> Vec<(&'s str, &'s str)> {
    let tokens = code(source);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let path: &[&str] = if *token == "use" { &tokens[at + 1..] } else { continue };
        let path = path.strip_prefix(&["self", ":", ":"]).unwrap_or(path);
        if let Some(module) = path.first().and_then(|first| modules.get(first)) {
            let end = path.iter().position(|token| *token == ";").unwrap_or(path.len());
            found.extend(
                path[1..end].iter().filter(|name| is_name(name)).map(|name| (*name, *module)),
            );
        }
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic())
}

/// Returns each set of modules that reach each other, as their sorted names separated by blanks.
fn circles(graph: &Graph) -> Vec<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for module in graph.keys() {
        let reached = reach(graph, module);
        let circle: Vec<&str> = reached
            .iter()
            .copied()
            .filter(|other| reach(graph, other).contains(module.as_str()))
            .collect();
        if circle.len() > 1 {
            found.insert(circle.join(" "));
        }
    }
    found.into_iter().collect()
}

/// Returns the modules that `module` reaches through imports; includes `module` itself only if it is in a
/// circle.
fn reach<'g>(graph: &'g Graph, module: &str) -> BTreeSet<&'g str> {
    let targets = |module: &str| graph.get(module).into_iter().flatten().map(String::as_str);
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = targets(module).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(targets(next));
        }
    }
    reached
}

/// Returns complaints about circles of the crate `name` that are not known, and known circles that no longer
/// exist. A known circle may shrink.
pub(crate) fn violations(name: &str, graph: &Graph, known: &[Known]) -> Vec<String> {
    let circles = circles(graph);
    let known: Vec<&str> =
        known.iter().filter(|(owner, _)| *owner == name).map(|(_, modules)| *modules).collect();
    let is_part =
        |circle: &str, of: &str| circle.split(' ').all(|part| of.split(' ').any(|of| of == part));
    let new = circles.iter().filter(|circle| !known.iter().any(|known| is_part(circle, known)));
    let gone = known.iter().filter(|known| !circles.iter().any(|circle| is_part(circle, known)));
    let new = new.map(|circle| {
        let edges = edges(graph, circle);
        format!(
            "{name}: modules import each other in a circle: {edges}; move what both need below both"
        )
    });
    let gone = gone.map(|circle| {
        format!("{name}: the circle {circle} is gone: remove it from lab/xtask/src/layers/table.rs")
    });
    new.chain(gone).collect()
}

/// Returns the imports inside `circle`, for each module as `module -> imports`: a starting point to remove
/// the circle.
fn edges(graph: &Graph, circle: &str) -> String {
    let modules: Vec<&str> = circle.split(' ').collect();
    let edges = modules.iter().map(|module| {
        let targets = graph.get(*module).into_iter().flatten().map(String::as_str);
        let inside: Vec<&str> = targets.filter(|target| modules.contains(target)).collect();
        format!("{module} -> {}", inside.join(" "))
    });
    edges.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
