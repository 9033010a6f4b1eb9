//! Files that are either complete or absent.
//!
//! A file is written under a temporary name in the same folder, and renamed when it is complete. Until then an
//! existing file with the final name is unchanged. After an error, the temporary file is removed. A pipe or a
//! device such as `/dev/null` is written directly, because a plain file must not replace a pipe or device.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// A file that is written under a temporary name. Dropping this value removes the file, unless the file was
/// completed.
#[derive(Debug)]
pub struct Unfinished {
    /// The temporary name and the final name of the file; `None` if the file is written directly, or is
    /// complete.
    names: Option<(PathBuf, PathBuf)>,
}

impl Unfinished {
    /// Creates a file under a temporary name; [`Unfinished::complete`] gives the file its final name `path`. If
    /// `path` is a symbolic link, the file replaces the target of the link. If `path` is a pipe or a character
    /// device, the pipe or device is opened and written directly.
    ///
    /// # Errors
    /// If the path names no file, a directory or a disk, or if the system refuses to create the file.
    pub fn create(path: &Path) -> io::Result<(Self, File)> {
        match fs::metadata(path) {
            Ok(found) if takes_a_stream(&found) => {
                let file = OpenOptions::new().write(true).open(path)?;
                return Ok((Self { names: None }, file));
            }
            Ok(found) if !found.is_file() => return Err(io::Error::other("it is no plain file")),
            _ => {}
        }
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let temporary = temporary(&target).ok_or(io::ErrorKind::InvalidFilename)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        Ok((Self { names: Some((temporary, target)) }, file))
    }

    /// Completes `file`: forces its content to the disk, and renames it to its final name. Without forcing the
    /// content to the disk first, a power failure could leave an empty file under the final name.
    ///
    /// # Errors
    /// If the system refuses to write or rename the file.
    pub fn complete(mut self, file: &File) -> io::Result<()> {
        if let Some((temporary, target)) = &self.names {
            file.sync_all()?;
            fs::rename(temporary, target)?;
            self.names = None;
        }
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.names {
            // If this fails, an unfinished file is left under its temporary name.
            _ = fs::remove_file(temporary);
        }
    }
}

/// Returns `true` if the file is a pipe or a character device. Such a file is written directly, and not replaced.
pub(crate) fn takes_a_stream(found: &Metadata) -> bool {
    found.file_type().is_fifo() || found.file_type().is_char_device()
}

/// Writes the file `path` with the function `fill`. Afterwards the file is either complete or, after an error,
/// unchanged.
///
/// # Errors
/// If the file cannot be created, written or renamed, or `fill` fails.
pub fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let (unfinished, mut file) = Unfinished::create(path)?;
    fill(&mut file)?;
    unfinished.complete(&file)
}

/// Returns a temporary name for `target`: hidden, in the same folder, and unique to this process. `None` if the target
/// has no file name.
fn temporary(target: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name()?);
    name.push(format!(".{}.partial", std::process::id()));
    Some(target.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_device_is_written_and_stays() {
        let null = Path::new("/dev/null");
        replace(null, |file| file.write_all(b"gone")).unwrap();
        assert!(takes_a_stream(&fs::metadata(null).unwrap()));
    }

    #[test]
    fn a_folder_is_refused_and_stays_as_it_is() {
        let folder = std::env::temp_dir().join(format!("rxo-folder-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let refused = replace(&folder, |file| file.write_all(b"x")).unwrap_err();
        assert_eq!(refused.to_string(), "it is no plain file");
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn a_failure_leaves_what_was_there_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("rxo-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.txt");
        replace(&path, |file| file.write_all(b"first")).unwrap();
        let failed = replace(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk full");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
