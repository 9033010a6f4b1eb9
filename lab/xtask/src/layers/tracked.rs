//! Checks the files in git: sources and documents, no binaries, no large files, nothing twice.
//!
//! A built file in git becomes outdated, and a copy of a generated file is not regenerated with it.
//! [`violations`] is pure; [`check`] lists and reads the files.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::sh::Program;

/// Largest size of a file in git.
const MOST_BYTES: usize = 1_000_000;
/// Smallest size for which equal files count as copies; shorter ones may be equal by chance.
const COPY_BYTES: usize = 256;
/// Folder of the fuzz targets' inputs, which are arbitrary bytes.
const INPUTS: &str = "lab/fuzz/corpus/";

/// Checks every file that git tracks below `root`. Without a `.git` folder it prints a note and returns
/// nothing.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    if !root.join(".git").exists() {
        println!("layers: this copy is not in git, so that what git keeps was not judged");
        return Ok(Vec::new());
    }
    // `safe.directory` lets git read a clone that belongs to another user, as in a container.
    let names = Program::new(root, "git", ["-c", "safe.directory=*", "ls-files", "-z"]).output()?;
    let is_plain = |name: &&str| fs::symlink_metadata(root.join(name)).is_ok_and(|is| is.is_file());
    let names = names.split('\0').filter(|name| !name.is_empty()).filter(is_plain);
    let files: Vec<(&str, Vec<u8>)> =
        names.map(|name| Ok((name, fs::read(root.join(name))?))).collect::<Result<_>>()?;
    Ok(violations(files.iter().map(|(name, bytes)| (*name, bytes.as_slice()))))
}

/// Returns a line for each file that does not belong in git.
fn violations<'f>(files: impl Iterator<Item = (&'f str, &'f [u8])>) -> Vec<String> {
    let mut found = Vec::new();
    let mut contents: HashMap<&[u8], &str> = HashMap::new();
    for (name, bytes) in files {
        if bytes.len() > MOST_BYTES {
            found.push(format!("{name} has {} bytes: git keeps at most {MOST_BYTES}", bytes.len()));
        }
        if name.starts_with(INPUTS) {
            continue;
        }
        if bytes.contains(&0) {
            found.push(format!("{name} is binary: build it instead, and name it in .gitignore"));
        }
        if bytes.len() >= COPY_BYTES
            && let Some(first) = contents.insert(bytes, name)
        {
            found.push(format!("{name} is a copy of {first}: keep one, and link to it"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_inputs_are_kept() {
        let files: [(&str, &[u8]); 3] = [
            ("a.rs", b"fn a() {}"),
            ("b.rs", b"fn a() {}"),
            ("lab/fuzz/corpus/parse/1", &[0; 300]),
        ];
        assert!(violations(files.into_iter()).is_empty());
    }

    #[test]
    fn binaries_large_files_and_copies_are_named() {
        let (large, text) = (vec![b'x'; MOST_BYTES + 1], [b'y'; COPY_BYTES]);
        let files: [(&str, &[u8]); 4] =
            [("a.so", b"\x7fELF\0"), ("b.txt", &large), ("c.txt", &text), ("d/c.txt", &text)];
        let found = violations(files.into_iter());
        assert!(found[0].starts_with("a.so is binary"), "{found:?}");
        assert!(found[1].starts_with("b.txt has 1000001 bytes"), "{found:?}");
        assert_eq!(found[2], "d/c.txt is a copy of c.txt: keep one, and link to it");
        assert_eq!(found.len(), 3);
    }
}
