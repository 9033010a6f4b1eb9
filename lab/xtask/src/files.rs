//! Finds the files below a folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Returns all files below `folder` with the extension `extension`, except in `target` folders. Sorted, so
/// that results are the same on every machine.
pub(crate) fn below(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let listing = fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
        for entry in listing {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
