//! The directory that is served, and what is found in it.
//!
//! Every name is opened by the kernel with `openat2` and `RESOLVE_BENEATH`: whatever the path, and
//! whoever changes links meanwhile, what is opened lies below the directory. A symbolic link is
//! followed when it is relative and stays below; one that leads out, or is absolute, is refused.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// The directory.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

/// Why a directory cannot be served.
#[derive(Debug)]
pub(super) enum NoRoot {
    /// It is none, or cannot be read.
    NoDirectory(io::Error),
    /// The kernel cannot keep paths below it.
    NoWall(io::Error),
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Found {
    File(Document),
    Folder(Folder),
    /// A device, a socket, a pipe: not for others.
    Other,
}

/// A regular file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) file: File,
    pub(super) bytes: u64,
    pub(super) inode: u64,
    pub(super) changed: SystemTime,
}

/// A directory in it, or itself.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Root {
    /// Opens the directory.
    ///
    /// # Errors
    /// When it cannot be served.
    pub(super) fn open(path: &Path) -> Result<Self, NoRoot> {
        let folder = openat(CWD, path, FOLDER, Mode::empty());
        let root = Self(folder.map_err(|errno| NoRoot::NoDirectory(errno.into()))?);
        root.find(Path::new("."), true).map_err(NoRoot::NoWall)?;
        Ok(root)
    }

    /// What `relative` leads to; only a directory when `is_folder`.
    ///
    /// # Errors
    /// As the system says; `EXDEV` for a way that leads out.
    pub(super) fn find(&self, relative: &Path, is_folder: bool) -> io::Result<Found> {
        let flags = if is_folder { FOLDER } else { FILE };
        let opened = self.open_below(relative, flags)?;
        let file = File::from(opened);
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Ok(Found::Folder(Folder(file.into())));
        }
        if !metadata.is_file() {
            return Ok(Found::Other);
        }
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        let changed = metadata.modified()?;
        Ok(Found::File(Document { file, bytes: metadata.len(), inode, changed }))
    }

    fn open_below(&self, relative: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..ATTEMPTS {
            match openat2(&self.0, relative, flags, Mode::empty(), resolve) {
                // Something above was moved while the kernel looked.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
        Err(Errno::AGAIN.into())
    }
}

impl Folder {
    /// Its names in order, directories with a `/` behind; at most `most`, and whether there are more.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn names(&self, most: usize) -> io::Result<(Vec<Vec<u8>>, bool)> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if names.len() == most {
                names.sort_unstable();
                return Ok((names, true));
            }
            let mark: &[u8] = if entry.file_type() == FileType::Directory { b"/" } else { b"" };
            names.push([name, mark].concat());
        }
        names.sort_unstable();
        Ok((names, false))
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);
/// Not blocking: opening a pipe would wait for who writes to it.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const ATTEMPTS: usize = 16;
