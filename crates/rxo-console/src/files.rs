//! Files that are either complete or absent.
//!
//! A file is written under a temporary name in the same folder and renamed when it is complete. Until
//! then an existing file of the final name stays. After an error nothing of the new file is left.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A file under a temporary name. Dropping it removes the file, unless it is complete.
#[derive(Debug)]
pub struct Unfinished {
    temporary: PathBuf,
    /// The final path.
    target: PathBuf,
    is_complete: bool,
}

impl Unfinished {
    /// Creates the file. A symbolic link is followed: the file that it names is replaced.
    ///
    /// # Errors
    /// If the path names no file, or the system refuses.
    pub fn create(path: &Path) -> io::Result<(Self, File)> {
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let temporary = temporary(&target).ok_or(io::ErrorKind::InvalidFilename)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        Ok((Self { temporary, target, is_complete: false }, file))
    }

    /// Completes `file`: writes it to the disk, because an empty file of the final name would be worse
    /// than none after a power cut, and renames it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn complete(mut self, file: &File) -> io::Result<()> {
        file.sync_all()?;
        fs::rename(&self.temporary, &self.target)?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_complete {
            // If this fails, an unfinished file is left under its temporary name.
            _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes the file `path` with `fill`.
///
/// # Errors
/// If the file cannot be created, written or renamed, or `fill` fails.
pub fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let (unfinished, mut file) = Unfinished::create(path)?;
    fill(&mut file)?;
    unfinished.complete(&file)
}

/// The temporary name: hidden, beside the target, and unique to this process.
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
