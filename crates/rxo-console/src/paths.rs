//! Checks the paths of result files before any work is done.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rustix::fs::{Access, access};

use crate::fault::usage;

/// Checks, without writing, that the file `path` can be written. `option` is the command-line option that gave
/// the path. Returns the path.
///
/// # Errors
/// If `path` exists and is not a plain file, or if its folder does not exist or is not writable. The message
/// names `option` and `path`.
pub fn for_file(option: &str, path: &Path) -> Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() || path.file_name().is_none() {
        return Err(usage(format!("{option} {}: that is a folder; name a file", path.display())));
    }
    // Completing the file would replace a device such as /dev/null with a plain file.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let text = format!("{option} {}: that is no plain file; name one", path.display());
        return Err(usage(text));
    }
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let text = format!(
            "{option} {}: there is no folder {}; make it first",
            path.display(),
            folder.display()
        );
        return Err(usage(text));
    }
    refuse_read_only(option, path, folder.unwrap_or(Path::new(".")))
}

/// Checks that `path` is a writable folder, or that a folder can be created at `path`. `option` is the
/// command-line option that gave the path. Returns the path.
///
/// # Errors
/// If `path` is a file, or a folder that this user cannot write. The message names `option` and `path`.
pub fn for_folder(option: &str, path: &Path) -> Result<PathBuf> {
    if path.exists() && !path.is_dir() {
        let text = format!("{option} {}: that is a file; name a folder", path.display());
        return Err(usage(text));
    }
    refuse_read_only(option, path, path)
}

/// Returns `path`, unless `folder` exists and is not writable for this process.
fn refuse_read_only(option: &str, path: &Path, folder: &Path) -> Result<PathBuf> {
    if folder.is_dir() && access(folder, Access::WRITE_OK).is_err() {
        let (path, folder) = (path.display(), folder.display());
        return Err(usage(format!(
            "{option} {path}: this user may not write in {folder}; name another folder"
        )));
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
        assert!(
            error(for_file("--html", Path::new("/dev/null"))).contains("that is no plain file")
        );
        assert!(error(for_folder("--parquet", Path::new("/dev/null"))).contains("that is a file"));
        assert!(for_file("--html", Path::new("report.html")).is_ok());
        assert!(for_folder("--parquet", Path::new("to-be-made")).is_ok());
    }
}
