//! A folder for what programs of others write: keys, sockets, output.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rxo_testbed::error::{Context, Result};

/// A temporary folder. Dropping this removes it.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

/// Number of folders made.
static MADE: AtomicU32 = AtomicU32::new(0);

impl Folder {
    /// Makes a folder; `purpose` is part of its name.
    pub(crate) fn new(purpose: &str) -> Result<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("rxo-{purpose}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left_to_the_system = fs::remove_dir_all(&self.0);
    }
}
