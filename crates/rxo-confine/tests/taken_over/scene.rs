//! The objects that the attempts act on: a folder, a file outside of it, and another process.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder and a process, which are removed and killed with the last copy of the scene.
#[derive(Clone)]
pub(crate) struct Scene(Arc<Inner>);

struct Inner {
    root: PathBuf,
    sibling: Child,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Scene {
    pub(crate) fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rxo-confine-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(root.join("folder")).unwrap();
        fs::write(root.join("folder/inside"), "inside").unwrap();
        fs::write(root.join("outside"), "outside").unwrap();
        let sibling = Command::new("sleep").arg("300").stdin(Stdio::null()).spawn().unwrap();
        Self(Arc::new(Inner { root, sibling }))
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.0.root.join("folder")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.0.root.join("outside")
    }

    /// Returns the id of another process of the same user.
    pub(crate) fn sibling(&self) -> u32 {
        self.0.sibling.id()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        _ = self.sibling.kill();
        _ = self.sibling.wait();
        _ = fs::remove_dir_all(&self.root);
    }
}
