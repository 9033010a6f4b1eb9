//! Compares the files that contain the word `unsafe` with those that may.
//!
//! The compiler's `unsafe_code` lint can be switched off in any file; this list has the only files that may
//! do so.

use std::path::Path;

use super::lexer;

/// A file or folder that may contain `unsafe`: crate, path prefix inside it, reason.
type Place = (&'static str, &'static str, &'static str);

/// Returns one line for each `unsafe` in `source`, the file `inside` of the crate `name`, unless `places` has
/// that file.
pub(crate) fn violations(name: &str, inside: &Path, source: &str, places: &[Place]) -> Vec<String> {
    let inside = inside.to_string_lossy();
    let is_allowed = |(owner, prefix, _): &Place| *owner == name && inside.starts_with(prefix);
    if places.iter().any(is_allowed) {
        return Vec::new();
    }
    let line = |line| format!("{name}: {inside}:{line} has `unsafe`, which this file may not have");
    lexer::lines_with_word(source, "unsafe").into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: &[Place] = &[("rxo-wire", "src/arch/", "SIMD")];

    fn count(name: &str, inside: &str) -> usize {
        violations(name, Path::new(inside), "fn f() { unsafe { g() } }", PLACES).len()
    }

    #[test]
    fn unsafe_stays_in_its_places() {
        assert_eq!(count("rxo-wire", "src/arch/avx2.rs"), 0);
        assert_eq!(count("rxo-wire", "src/archive.rs"), 1);
        assert_eq!(count("rxo-wire", "tests/arch.rs"), 1);
        assert_eq!(count("rxo-frame", "src/arch/avx2.rs"), 1);
    }

    #[test]
    fn a_violation_names_file_and_line() {
        let found = violations("a", Path::new("src/b.rs"), "// one\nunsafe fn f() {}\n", PLACES);
        assert_eq!(found, ["a: src/b.rs:2 has `unsafe`, which this file may not have"]);
    }
}
