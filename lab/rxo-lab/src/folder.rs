//! The temporary directory of a measurement.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// A directory for sockets and profiles. Dropping this removes it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes a directory with a unique name that contains `what`.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub(crate) fn new(what: &str) -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(format!("rxo-{what}-{process}-{number}"));
        fs::create_dir_all(&path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Self(path))
    }

    /// The path of the file or socket `name`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the path of the socket of the `n`-th guest, counted from 0.
    pub(crate) fn guest(&self, n: usize) -> PathBuf {
        self.file(&format!("{n}.sock"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A directory that cannot be removed does no harm, so the error is ignored.
        _ = fs::remove_dir_all(&self.0);
    }
}
