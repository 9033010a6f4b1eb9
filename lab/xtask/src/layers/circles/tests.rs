use super::*;

/// Returns the circles of a crate made of `files`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<_> = files.iter().map(|(path, source)| (Path::new(*path), *source)).collect();
    circles(&imports(&files))
}

#[test]
fn two_modules_that_import_each_other_are_a_circle() {
    assert_eq!(found(&[("a.rs", "use crate::b::X;"), ("b.rs", "use crate::a::Y;")]), ["a b"]);
    assert_eq!(
        found(&[("a/mod.rs", "use super::b::X;"), ("b/c.rs", "fn f() { super::super::a::y() }")]),
        ["a b"]
    );
}

#[test]
fn a_circle_goes_through_several_modules() {
    let files = [
        ("a.rs", "use crate::{b, d::{E, F}};"),
        ("b.rs", "use crate::c;"),
        ("c.rs", "crate::a!()"),
    ];
    assert_eq!(found(&files), ["a b c"]);
}

#[test]
fn a_name_of_the_root_is_its_modules() {
    let root = ("lib.rs", "mod a;\npub use a::{Name, deep::Other as Third};");
    assert_eq!(found(&[root, ("a.rs", "use crate::b;"), ("b.rs", "use crate::Third;")]), ["a b"]);
}

#[test]
fn imports_in_one_direction_are_none() {
    assert!(
        found(&[("a.rs", "use crate::b;"), ("b.rs", "use super::c;"), ("c.rs", "")]).is_empty()
    );
    assert!(
        found(&[("a/mod.rs", "mod x;"), ("a/x.rs", "use super::Y; use crate::a::Z;")]).is_empty()
    );
}

#[test]
fn tests_text_and_visibility_do_not_count() {
    for source in [
        "#[cfg(test)] mod tests { use crate::a; }",
        "// crate::a",
        "/// [`x`](crate::a)",
        "pub(in crate::a) fn f() {}",
    ] {
        assert!(found(&[("a.rs", "use crate::b;"), ("b.rs", source)]).is_empty(), "{source}");
    }
    assert!(found(&[("a.rs", "use crate::b;"), ("b/tests.rs", "use crate::a;")]).is_empty());
}

#[test]
fn code_behind_a_test_counts() {
    let source = "#[cfg(test)] mod tests { fn f() {} } #[cfg(test)] use x; use crate::a;";
    assert_eq!(found(&[("a.rs", "use crate::b;"), ("b.rs", source)]), ["a b"]);
}

#[test]
fn only_known_circles_pass_and_none_grows() {
    const KNOWN: &[Known] = &[("one", "a b c"), ("two", "x y")];
    let judge = |name: &str, circle: &[&str]| {
        let next = circle.iter().cycle().skip(1);
        let edge = |(from, to): (&&str, &&str)| (from.to_string(), [to.to_string()].into());
        violations(name, &circle.iter().zip(next).map(edge).collect(), KNOWN)
    };
    assert!(judge("one", &["a", "b", "c"]).is_empty());
    assert!(judge("one", &["a", "b"]).is_empty());
    assert_eq!(
        judge("one", &["a", "b", "c", "d"]).len(),
        2,
        "a new one, and the known one has gone"
    );
    let new = judge("three", &["a", "b"]);
    assert!(new[0].contains("a -> b, b -> a"), "{new:?}");
    assert_eq!(judge("two", &[]).len(), 1);
}
