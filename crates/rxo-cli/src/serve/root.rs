//! The directory that is served, and what is found in it.
//!
//! Every name is opened by the kernel with `openat2` and `RESOLVE_BENEATH`: whatever the path, and
//! whoever changes links meanwhile, what is opened lies below the directory. A symbolic link is
//! followed when it is relative and stays below; one that leads out, or is absolute, is refused.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{CWD, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::limits::LISTING_BYTES;

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

/// Names of a directory that follow one another.
#[derive(Debug)]
pub(super) struct Names {
    /// In order, those of directories with a `/` behind.
    pub(super) names: BTreeSet<Vec<u8>>,
    /// Whether more follow these.
    pub(super) has_more: bool,
    /// Whether the directory has more entries than are looked at.
    pub(super) was_cut: bool,
}

impl Folder {
    /// The first names after `after`: as many as take [`LISTING_BYTES`], `cost` bytes each and what keeping
    /// them takes; at least one, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn names_after(
        &self,
        after: &[u8],
        cost: impl Fn(&[u8]) -> usize,
    ) -> io::Result<Names> {
        let cost = |name: &[u8]| cost(name).max(name.len() + NAME_BYTES);
        let mut found = Names { names: BTreeSet::new(), has_more: false, was_cut: false };
        let mut bytes = 0;
        for (index, entry) in Dir::read_from(&self.0)?.enumerate() {
            if index == MOST_ENTRIES {
                found.was_cut = true;
                break;
            }
            let Some(name) = name_of(&entry?) else { continue };
            let is_behind = found.has_more && found.names.last().is_some_and(|last| *last < name);
            if name.as_slice() <= after || is_behind {
                continue;
            }
            bytes += cost(&name);
            found.names.insert(name);
            while bytes > LISTING_BYTES && found.names.len() > 1 {
                let last = found.names.pop_last();
                bytes -= last.map_or(0, |last| cost(&last));
                found.has_more = true;
            }
        }
        Ok(found)
    }
}

fn name_of(entry: &DirEntry) -> Option<Vec<u8>> {
    let name = entry.file_name().to_bytes();
    let mark: &[u8] = if entry.file_type() == FileType::Directory { b"/" } else { b"" };
    (!matches!(name, b"." | b"..")).then(|| [name, mark].concat())
}

/// What keeping a name takes beside its bytes.
const NAME_BYTES: usize = 64;
/// So many entries of a directory are looked at for each piece of its page.
const MOST_ENTRIES: usize = 100_000;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);
/// Not blocking: opening a pipe would wait for who writes to it.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const ATTEMPTS: usize = 16;
