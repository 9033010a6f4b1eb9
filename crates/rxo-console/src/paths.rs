//! Where results are to go, looked at before any work is done for them.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::fault::usage;

/// Checks, without writing, that the file `path` can be written. Returns the path.
///
/// # Errors
/// When `path` is a folder, or its folder does not exist; the message names `option` and `path`.
pub fn for_file(option: &str, path: &Path) -> Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() || path.file_name().is_none() {
        return Err(usage(format!("{option} {}: that is a folder; name a file", path.display())));
    }
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let text = format!(
            "{option} {}: there is no folder {}; make it first",
            path.display(),
            folder.display()
        );
        return Err(usage(text));
    }
    Ok(path.to_owned())
}

/// Checks that `path` is a folder, or can become one. Returns the path.
///
/// # Errors
/// When `path` is a file; the message names `option` and `path`.
pub fn for_folder(option: &str, path: &Path) -> Result<PathBuf> {
    if path.exists() && !path.is_dir() {
        let text = format!("{option} {}: that is a file; name a folder", path.display());
        return Err(usage(text));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_refused_before_the_work() {
        let error = |result: Result<PathBuf>| result.unwrap_err().to_string();
        let text = error(for_file("--html", Path::new("/nowhere-at-all/r.html")));
        assert!(text.contains("--html /nowhere-at-all/r.html: there is no folder"), "{text}");
        assert!(error(for_file("--html", Path::new("/tmp"))).contains("that is a folder"));
        assert!(error(for_folder("--parquet", Path::new("/dev/null"))).contains("that is a file"));
        assert!(for_file("--html", Path::new("report.html")).is_ok());
        assert!(for_folder("--parquet", Path::new("to-be-made")).is_ok());
    }
}
