//! Saves parts of studies in files, and merges them.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use rxo_console::files;
use rxo_trace::study::Part;

use crate::exit::usage;

/// Saves `part` in a file at `path`, completely or not at all.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(part: &Part, path: &Path) -> Result<()> {
    files::replace(path, |file| file.write_all(&part.to_bytes()))
        .with_context(|| format!("--save {}: the part was not written", path.display()))
}

/// Returns the sum of the parts that are saved in the files `paths`. Memory holds the sum and one part at a time.
///
/// # Errors
/// If a part cannot be read, or does not match the others.
pub(super) fn merge(paths: &[PathBuf]) -> Result<Part> {
    let mut sum: Option<Part> = None;
    for path in paths {
        let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let bytes = std::fs::read(path).map_err(|error| anyhow!(named(&error)))?;
        let part = Part::from_bytes(&bytes).map_err(|error| usage(named(&error)))?;
        sum = Some(match sum {
            None => part,
            Some(sum) => sum.merge(part).map_err(|error| usage(named(&error)))?,
        });
    }
    sum.ok_or_else(|| usage("no parts"))
}
