//! Made-up graphs, each of which violates one rule.

use super::super::table::LAYERS;
use super::*;
use crate::workspace::Dependency;

const MADE_UP: &[Layer] = &[
    Layer { name: "rxo-wire", level: 1, is_pure: true, imports: &[] },
    Layer { name: "rxo-coalesce", level: 2, is_pure: true, imports: &[("rxo-wire", "headers")] },
    Layer { name: "rxo-device", level: 2, is_pure: false, imports: &[] },
    Layer { name: "rxo-tcp", level: 3, is_pure: true, imports: &[("rxo-coalesce", "convenience")] },
    Layer { name: "rxo-testkit", level: 3, is_pure: false, imports: &[] },
    Layer { name: "rxo-testbed", level: 4, is_pure: false, imports: &[] },
    Layer { name: "rxo", level: 4, is_pure: false, imports: &[] },
    Layer { name: "rxo-cli", level: 5, is_pure: false, imports: &[("rxo-testbed", "demo")] },
    Layer { name: "rxo-lab", level: 5, is_pure: false, imports: &[] },
    Layer { name: "tool", level: 6, is_pure: false, imports: &[("rxo-lab", "reuse")] },
];

fn member(name: &str, kind: Kind) -> Dependency {
    Dependency { name: name.to_owned(), kind, is_member: true }
}

fn outsider(name: &str, kind: Kind) -> Dependency {
    Dependency { name: name.to_owned(), kind, is_member: false }
}

fn package(name: &str, dependencies: Vec<Dependency>) -> Package {
    Package { name: name.to_owned(), folder: "/".into(), dependencies, ..Package::default() }
}

/// Returns the violations of a crate whose manifest has `extra` beside the dependencies of its row.
fn complaints(name: &str, extra: Dependency) -> Vec<String> {
    let layer = row(MADE_UP, name).unwrap();
    let mut dependencies: Vec<_> =
        layer.imports.iter().map(|(to, _)| member(to, Kind::Normal)).collect();
    if !dependencies.contains(&extra) {
        dependencies.push(extra);
    }
    // Only a row of the dependency itself gives a reason.
    let reasons = "| `cpufeatures` | `rxo-wire` | to ask |\n\
                   | `rxo-coalesce` | `cpufeatures` | not taken |";
    violations(&[package(name, dependencies)], MADE_UP, reasons)
}

fn only(complaints: Vec<String>, words: &[&str]) {
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    for word in words {
        assert!(complaints[0].contains(word), "{word:?} is not in {:?}", complaints[0]);
    }
}

#[test]
fn the_real_table_has_no_flaw() {
    assert_eq!(flaws(LAYERS), Vec::<String>::new());
}

#[test]
fn an_edge_of_the_table_is_allowed() {
    assert_eq!(complaints("rxo-coalesce", member("rxo-wire", Kind::Normal)), Vec::<String>::new());
}

#[test]
fn an_import_that_points_up_is_refused() {
    only(
        complaints("rxo-wire", member("rxo-coalesce", Kind::Normal)),
        &["rxo-wire imports rxo-coalesce", "from level 1 to 2"],
    );
}

#[test]
fn an_import_on_the_same_level_is_refused() {
    only(
        complaints("rxo-coalesce", member("rxo-device", Kind::Normal)),
        &["rxo-coalesce imports rxo-device", "level 2"],
    );
}

#[test]
fn an_import_that_points_down_still_needs_its_line() {
    only(
        complaints("rxo", member("rxo-wire", Kind::Normal)),
        &["rxo imports rxo-wire", "not in the table"],
    );
}

#[test]
fn an_import_that_is_never_right_is_refused_even_with_a_line() {
    only(
        complaints("rxo-tcp", member("rxo-coalesce", Kind::Normal)),
        &["rxo-tcp must never import rxo-coalesce"],
    );
    only(
        complaints("rxo-device", outsider("libc", Kind::Normal)),
        &["rxo-device must never import libc"],
    );
}

#[test]
fn the_ends_of_the_graph_are_imported_by_nobody() {
    only(
        complaints("tool", member("rxo-lab", Kind::Normal)),
        &["tool imports rxo-lab", "nobody imports"],
    );
    only(
        complaints("rxo", member("rxo-lab", Kind::Dev)),
        &["the tests of rxo import rxo-lab", "nobody imports"],
    );
}

#[test]
fn lab_and_testkit_are_for_tests() {
    assert!(complaints("rxo-wire", member("rxo-testbed", Kind::Dev)).is_empty());
    assert!(complaints("rxo-wire", member("rxo-testkit", Kind::Dev)).is_empty());
    only(
        complaints("rxo", member("rxo-testbed", Kind::Normal)),
        &["rxo imports rxo-testbed", "level 4"],
    );
    only(
        complaints("rxo", member("rxo-testkit", Kind::Normal)),
        &["rxo imports rxo-testkit", "not in the table"],
    );
}

#[test]
fn tests_may_look_down_but_not_up() {
    assert!(complaints("rxo", member("rxo-wire", Kind::Dev)).is_empty());
    only(complaints("rxo-wire", member("rxo", Kind::Dev)), &["the tests of rxo-wire import rxo"]);
}

#[test]
fn a_pure_crate_names_what_it_takes_from_outside() {
    assert!(complaints("rxo-wire", outsider("cpufeatures", Kind::Normal)).is_empty());
    assert!(complaints("rxo-wire", outsider("proptest", Kind::Dev)).is_empty());
    assert!(complaints("rxo-cli", outsider("clap", Kind::Normal)).is_empty());
    only(
        complaints("rxo-coalesce", outsider("cpufeatures", Kind::Normal)),
        &["`rxo-coalesce`", "`cpufeatures`", "docs/dependencies.md"],
    );
}

#[test]
fn a_crate_without_a_row_is_refused() {
    only(violations(&[package("rxo-new", Vec::new())], MADE_UP, ""), &["rxo-new has no row"]);
    only(
        complaints("rxo", member("rxo-new", Kind::Normal)),
        &["rxo imports rxo-new", "has no row"],
    );
}

#[test]
fn an_edge_that_nothing_uses_is_removed() {
    only(
        violations(&[package("rxo-cli", Vec::new())], MADE_UP, ""),
        &["rxo-cli does not import rxo-testbed any more"],
    );
}

#[test]
fn a_table_that_lies_is_refused() {
    let up = [
        Layer { name: "a", level: 1, is_pure: true, imports: &[("b", "why")] },
        Layer { name: "b", level: 2, is_pure: true, imports: &[("c", "why"), ("d", "")] },
        Layer { name: "c", level: 2, is_pure: true, imports: &[] },
    ];
    let found = flaws(&up);
    let expected = ["a -> b points up", "b -> c stays on level 2", "no reason", "without a row"];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (line, words) in found.iter().zip(expected) {
        assert!(line.contains(words), "{words:?} is not in {line:?}");
    }
}

#[test]
fn a_crate_must_take_the_lints() {
    assert_eq!(lints_violation("a", "[package]\n[lints]\nworkspace = true\n"), None);
    assert!(lints_violation("a", "[package]\nname = \"a\"\n").is_some());
    assert!(lints_violation("a", "[lints]\nrust.unsafe_code = \"allow\"\n").is_some());
}

#[test]
fn the_product_does_not_import_the_laboratory() {
    let in_folder = |mut package: Package, folder: &str| {
        package.folder = folder.into();
        package
    };
    let bed = in_folder(package("rxo-testbed", Vec::new()), "/r/lab/rxo-testbed");
    let dependencies = |kind| vec![member("rxo-testbed", kind)];
    let of = |kind, folder| {
        let cli = in_folder(package("rxo-cli", dependencies(kind)), folder);
        violations(&[bed.clone(), cli], MADE_UP, "")
    };
    assert_eq!(of(Kind::Normal, "/r/lab/rxo-cli"), Vec::<String>::new());
    only(of(Kind::Normal, "/r/crates/rxo-cli"), &["rxo-cli imports rxo-testbed", "laboratory"]);
    let for_tests = of(Kind::Dev, "/r/crates/rxo-cli");
    assert!(for_tests.iter().all(|line| !line.contains("laboratory")), "{for_tests:?}");
}
