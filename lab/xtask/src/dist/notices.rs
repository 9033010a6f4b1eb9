//! The licences of third-party crates in the program. Most licences require that their text is distributed
//! with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::parts::Part;

/// Prefixes of the names of files that contain a licence, or a notice that a licence requires.
const NAMES: &[&str] = &["license", "licence", "copying", "copyright", "notice", "unlicense"];

/// Returns a list of the third-party crates with their licences, then each licence text once, with its
/// crates.
///
/// # Errors
/// If a crate's folder or file cannot be read.
pub(super) fn text(parts: &[Part]) -> Result<String> {
    let mut list = String::new();
    // The crates to which each text belongs.
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for part in parts.iter().filter(|part| part.sha256.is_some()) {
        let (name, version) = &part.id;
        list += &format!("{name} {version}: {}\n", part.license);
        for text in texts_in(&part.folder)? {
            let crates = texts.entry(text).or_default();
            if crates.last() != Some(&name.as_str()) {
                crates.push(name);
            }
        }
    }
    let text = |(text, crates): (String, Vec<&str>)| {
        format!("\n{}\n{}:\n\n{}\n", "-".repeat(80), crates.join(", "), text)
    };
    Ok(HEAD.to_owned() + &list + &texts.into_iter().map(text).collect::<String>())
}

const HEAD: &str = "The program rxo contains these packages, Rust's standard library (MIT OR Apache-2.0) and the C \
                    library musl (MIT).\nThe texts of the licences that come with the packages follow.\n\n";

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.file_type()?.is_file() && NAMES.iter().any(|begin| name.starts_with(begin)) {
            let bytes = fs::read(entry.path())?;
            texts.push(String::from_utf8_lossy(&bytes).trim().replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_two_crates_stands_once() {
        let base = std::env::temp_dir().join(format!("rxo-notices-{}", std::process::id()));
        let part = |name: &str, license: &str| {
            let folder = base.join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("LICENSE-MIT"), license).unwrap();
            fs::write(folder.join("README.md"), "not this").unwrap();
            Part {
                id: (name.to_owned(), "1.0.0".to_owned()),
                license: "MIT".to_owned(),
                description: String::new(),
                repository: String::new(),
                sha256: Some(String::new()),
                folder,
                needs: Vec::new(),
            }
        };
        let all = text(&[part("a", "free\r\n"), part("b", "free"), part("c", "other")]).unwrap();
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(all.matches("free").count(), 1, "{all}");
        assert!(all.contains("\na, b:\n\nfree\n") && all.contains("\nc:\n\nother\n"), "{all}");
        assert!(all.contains("a 1.0.0: MIT\n") && !all.contains("not this"), "{all}");
    }
}
