//! Where a measurement keeps its files.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// A directory for sockets and a profile, which goes when it is dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Self> {
        let path = env::temp_dir().join(format!("rxo-menon-{}", std::process::id()));
        fs::create_dir_all(&path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Self(path))
    }

    /// The card's socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.0.join("card.sock")
    }

    /// The socket of a guest.
    pub(super) fn guest(&self) -> PathBuf {
        self.0.join("guest.sock")
    }

    pub(super) fn profile(&self) -> PathBuf {
        self.0.join("callgrind.out")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A directory that is left behind harms nobody.
        _ = fs::remove_dir_all(&self.0);
    }
}
