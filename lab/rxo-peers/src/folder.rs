//! A folder for what programs write: keys, sockets, profiles, output.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rxo_testbed::error::{Context, Result};

/// A temporary folder that only this user may enter, so that nobody else can change its content. Dropping this removes
/// it.
#[derive(Debug)]
pub struct Folder(PathBuf);

/// Number of folders made.
static MADE: AtomicU32 = AtomicU32::new(0);

impl Folder {
    /// Makes a folder with a unique name that contains `purpose`.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn new(purpose: &str) -> Result<Self> {
        loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let name = format!("rxo-{purpose}-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // A leftover of a killed process with the same id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => made.context(|| format!("cannot make {}", path.display()))?,
            }
        }
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the file or socket `name`.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the path of the socket of the `n`-th guest, counted from 0.
    #[must_use]
    pub fn guest(&self, n: usize) -> PathBuf {
        self.file(&format!("{n}.sock"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed is in the temporary directory, so the error is ignored.
        _ = fs::remove_dir_all(&self.0);
    }
}
