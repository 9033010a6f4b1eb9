//! The folder in which a measurement keeps its files.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// A directory for sockets and profiles, which is removed when this is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes a directory that nobody else uses; `what` is in its name.
    ///
    /// # Errors
    /// If there can be none.
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

    /// The socket of the `n`-th guest, counted from 0.
    pub(crate) fn guest(&self, n: usize) -> PathBuf {
        self.file(&format!("{n}.sock"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A directory that is left behind harms nobody.
        _ = fs::remove_dir_all(&self.0);
    }
}
