//! Files that are either complete or absent.
//!
//! A file is written under a temporary name in the same folder, and renamed when it is complete. Until then an
//! existing file with the final name is unchanged. After an error, the temporary file is removed. A pipe or a
//! device such as `/dev/null` is written directly, because a plain file must not replace a pipe or device.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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
        let (temporary, file) = create_temporary(&target)?;
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

/// Creates a new file under a temporary name for `target`. The number in the name is the process id, or the next one
/// whose name is free: a process that was killed leaves its file, and a later process may have the same id, as in a
/// container.
fn create_temporary(target: &Path) -> io::Result<(PathBuf, File)> {
    for number in std::process::id().. {
        let temporary = temporary(target, number).ok_or(io::ErrorKind::InvalidFilename)?;
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (temporary, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns a temporary name for `target`: hidden, in the same folder, and with this number. Contains only the beginning
/// of a long name, so that every name of a file has one. `None` if the target has no file name.
fn temporary(target: &Path, number: u32) -> Option<PathBuf> {
    let beginning = target.file_name()?.as_bytes();
    let beginning = &beginning[..beginning.len().min(MOST_NAME_BYTES)];
    let name = [b".", beginning, format!(".{number}.partial").as_bytes()].concat();
    Some(target.with_file_name(OsString::from_vec(name)))
}

/// Maximum length of the part of a file's name that its temporary name contains. A name has at most 255 bytes.
const MOST_NAME_BYTES: usize = 200;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A process with the same id was killed, and the name is as long as a name can be.
    #[test]
    fn a_leftover_and_a_long_name_are_no_obstacle() {
        let folder = std::env::temp_dir().join(format!("rxo-left-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a".repeat(255));
        let (killed, _) = Unfinished::create(&path).unwrap();
        replace(&path, |file| file.write_all(b"all")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all");
        drop(killed);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

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
