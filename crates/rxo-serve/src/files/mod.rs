//! Opens and reads the files below one directory, for conversations.
//!
//! Only this module of the crate has input, output and threads: `readers` has threads that wait for the disk,
//! so that no other thread blocks on it. `pages` is the cache of file contents. The kernel opens every path
//! with `openat2` and `RESOLVE_BENEATH`: so the opened file is always below the directory, even if links change
//! at the same time. A symbolic link is followed if it is relative and stays below the directory; an absolute
//! link, or a link that leads out of the directory, is refused.

mod pages;
mod readers;
mod version;

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

pub use self::pages::{Page, Pages};
pub(crate) use self::readers::{FileTask, Job, Readers, Reply};
use self::version::{FileVersion, Stamp};
use crate::limits::PIECE_BYTES;
use crate::lookup::{Facts, Found, Lookup, Problem};
use crate::names::Names;

/// The directory whose files are served.
#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    lists: Mutex<Lists>,
    /// Open files by their version, so that all answers with one version of a file share one descriptor.
    files: Mutex<HashMap<FileVersion, Weak<File>>>,
}

/// The lists of names that conversations currently hold or read. Conversations that list one directory share
/// its list.
type Lists = Vec<List>;

/// The list of the names in one directory.
#[derive(Debug, Default)]
struct List {
    /// The version of the directory. `None` if its names may change without a new version, in which case the
    /// list is not shared.
    version: Option<Version>,
    /// The lock that a conversation holds while it reads the directory.
    turn: Arc<Mutex<()>>,
    /// The names in the directory; they stay in memory as long as a conversation holds them.
    names: Weak<Names>,
}

/// Identifies a directory, and the state of its names at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    changed: SystemTime,
}

/// The reason why a directory cannot be served.
#[derive(Debug)]
pub enum NoRoot {
    /// The path is not a directory, or cannot be read.
    NoDirectory(io::Error),
    /// The kernel cannot confine paths to the directory: `openat2` is missing (Linux before 5.6).
    NoWall(io::Error),
}

/// The files that one conversation has open: at most one file and one directory.
#[derive(Debug, Default)]
pub struct Opened {
    file: Option<(Arc<File>, FileVersion)>,
    folder: Option<File>,
}

/// Determines if a file system call may block on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWait {
    /// The call blocks until the disk has answered.
    Waits,
    /// The call returns `None` instead of blocking on the disk.
    None,
}

impl Root {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// If the directory cannot be served.
    pub fn open(path: &Path) -> Result<Self, NoRoot> {
        let folder = openat(CWD, path, FOLDER, Mode::empty());
        let folder = folder.map_err(|errno| NoRoot::NoDirectory(errno.into()))?;
        let root = Self { folder, lists: Mutex::default(), files: Mutex::default() };
        let itself = root.open_below(Path::new("."), FOLDER);
        itself.map_err(|errno| NoRoot::NoWall(errno.into()))?;
        Ok(root)
    }

    /// Opens a path if the kernel can resolve it without waiting for the disk; otherwise returns `None`.
    fn open_cached(&self, relative: &Path, flags: OFlags) -> Option<Result<OwnedFd, Errno>> {
        let resolve = WALL | ResolveFlags::CACHED;
        match openat2(&self.folder, relative, flags, Mode::empty(), resolve) {
            // `EINVAL`: Linux before 5.12 does not know the flag.
            Err(Errno::AGAIN | Errno::INTR | Errno::INVAL) => None,
            other => Some(other),
        }
    }

    fn open_below(&self, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        for _ in 0..ATTEMPTS {
            match openat2(&self.folder, relative, flags, Mode::empty(), WALL) {
                // A directory above was moved while the kernel resolved the path: retry.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Returns the open file of this version if there is one. Otherwise returns `file`, which other answers
    /// share from now on.
    fn share(&self, version: FileVersion, file: File) -> Arc<File> {
        let mut files = lock(&self.files);
        if let Some(open) = files.get(&version).and_then(Weak::upgrade) {
            return open;
        }
        if files.len() >= FEW_FILES && files.len().is_power_of_two() {
            files.retain(|_, file| file.strong_count() > 0);
        }
        let file = Arc::new(file);
        files.insert(version, Arc::downgrade(&file));
        file
    }

    /// Returns the names in `folder`: the list that other conversations hold, or the result of `read` if there
    /// is no such list.
    fn names(
        &self,
        folder: &File,
        read: impl FnOnce(&File) -> Result<Names, Problem>,
    ) -> Result<Arc<Names>, Problem> {
        let turn = self.turn(Version::of(&folder.metadata()?)?);
        // Locked while the directory is read: other conversations that want this list wait instead of reading
        // it too.
        let _mine = lock(&turn);
        if let Some(names) = self.held(&turn) {
            return Ok(names);
        }
        let names = Arc::new(read(folder)?);
        self.hold(&turn, &names)?;
        Ok(names)
    }

    /// Returns the lock for reading the names of the directory `version`. It is the lock of the directory's
    /// list. If no conversation holds a list, or the directory may still change without a new version, it is
    /// the lock of a new list.
    fn turn(&self, version: Version) -> Arc<Mutex<()>> {
        let is_stable = version.changed.elapsed().is_ok_and(|age| age >= CLOCK_TICK);
        let version = is_stable.then_some(version);
        let mut lists = lock(&self.lists);
        lists.retain(|list| Arc::strong_count(&list.turn) > 1 || list.names.strong_count() > 0);
        let known = lists.iter().find(|list| version.is_some() && list.version == version);
        if let Some(list) = known {
            return Arc::clone(&list.turn);
        }
        let list = List { version, ..List::default() };
        let turn = Arc::clone(&list.turn);
        lists.push(list);
        turn
    }

    /// Returns the names in the list that belongs to `turn`; `None` if no conversation holds them.
    fn held(&self, turn: &Arc<Mutex<()>>) -> Option<Arc<Names>> {
        let lists = lock(&self.lists);
        lists.iter().find(|list| Arc::ptr_eq(&list.turn, turn))?.names.upgrade()
    }

    /// Stores `names` in the list that belongs to `turn`, so that other conversations can share them. The limit of
    /// memory is checked under the lock of all lists, so that concurrent calls cannot exceed it.
    ///
    /// # Errors
    /// [`Problem::Busy`] if the lists would exceed [`MOST_HELD_BYTES`].
    fn hold(&self, turn: &Arc<Mutex<()>>, names: &Arc<Names>) -> Result<(), Problem> {
        let mut lists = lock(&self.lists);
        let held = lists.iter().filter_map(|list| list.names.upgrade());
        if held.map(|names| names.bytes()).sum::<usize>() + names.bytes() > MOST_HELD_BYTES {
            return Err(Problem::Busy);
        }
        let own = lists.iter_mut().filter(|list| Arc::ptr_eq(&list.turn, turn));
        own.for_each(|list| list.names = Arc::downgrade(names));
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves the protected data consistent: each change is a single step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Version {
    fn of(folder: &Metadata) -> io::Result<Self> {
        let (device, inode) = (folder.dev(), folder.ino());
        Ok(Self { device, inode, changed: folder.modified()? })
    }
}

/// Reads the names in a directory, at most [`MOST_ENTRIES`] entries.
fn read(folder: &File) -> Result<Names, Problem> {
    let mut names = Names::default();
    for (index, entry) in Dir::read_from(folder)?.enumerate() {
        if index == MOST_ENTRIES {
            names.cut();
            break;
        }
        names.extend(name_of(&entry?));
    }
    Ok(names)
}

impl Opened {
    /// Opens a path and keeps it open, as [`Step::Find`](crate::Step::Find) requires. `None` if the call would
    /// have to wait for the disk and `disk_wait` forbids it.
    ///
    /// # Errors
    /// If the path does not exist or leads out of the directory, or if the system refuses to open it.
    pub fn find(
        &mut self,
        root: &Root,
        lookup: &Lookup,
        disk_wait: DiskWait,
    ) -> Option<Result<Found, Problem>> {
        let flags = if lookup.is_folder { FOLDER } else { FILE };
        let opened = match disk_wait {
            DiskWait::Waits => root.open_below(&lookup.path, flags),
            DiskWait::None => root.open_cached(&lookup.path, flags)?,
        };
        Some(opened.map_err(Problem::from).and_then(|file| self.keep(root, file.into(), lookup)))
    }

    fn keep(&mut self, root: &Root, file: File, lookup: &Lookup) -> Result<Found, Problem> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            // The index file of a directory may be a directory itself; the directory to list is the one that
            // contains it.
            if lookup.is_folder {
                self.folder = Some(file);
            }
            return Ok(Found::Folder);
        }
        if !metadata.is_file() {
            return Ok(Found::Other);
        }
        let (bytes, changed) = (metadata.len(), metadata.modified()?);
        let version = FileVersion::of(&metadata);
        self.file = Some((root.share(version, file), version));
        Ok(Found::File(Facts { bytes, changed }))
    }

    /// Reads the directory that was found last, once, and closes it, as [`Step::List`](crate::Step::List)
    /// requires. Reads at most 100,000 entries. Conversations that list a directory at the same time share
    /// one list, and wait while one of them reads it.
    ///
    /// # Errors
    /// If the directory cannot be read; [`Problem::Busy`] if all lists together need too much memory.
    pub fn names(&mut self, root: &Root) -> Result<Arc<Names>, Problem> {
        let folder = self.folder.take().ok_or(Problem::Unreadable)?;
        root.names(&folder, read)
    }

    /// Returns page `index` of the file that was found last: [`PIECE_BYTES`] long, except the last page. The
    /// page comes from the cache `pages`, or is read and, if the file's version is settled at `now`
    /// ([`Opened::unstable_for`]), cached. `None` if the call would have to wait for the disk and `disk_wait`
    /// forbids it. The result is an error if the file cannot be read, or is no longer the version that was
    /// found.
    pub fn page(
        &self,
        pages: &mut Pages,
        index: u64,
        now: SystemTime,
        disk_wait: DiskWait,
    ) -> Option<io::Result<Page>> {
        let known = self.file.as_ref().and_then(|(_, version)| pages.get(version, index));
        if known.is_some() {
            return known.map(Ok);
        }
        let read = self.read_page(index, pages.spare(), disk_wait)?;
        Some(read.map(|bytes| self.keep_page(pages, index, bytes, now)))
    }

    /// Reads page `index` of the file that was found last into `buffer`; `None` if the call would have to
    /// wait for the disk and `disk_wait` forbids it.
    pub(crate) fn read_page(
        &self,
        index: u64,
        buffer: Vec<u8>,
        disk_wait: DiskWait,
    ) -> Option<io::Result<Vec<u8>>> {
        match &self.file {
            Some((file, version)) => version.read(file, index, buffer, disk_wait),
            None => Some(Err(io::ErrorKind::NotFound.into())),
        }
    }

    /// Caches a page that was read, unless the file may still change without a new version.
    pub(crate) fn keep_page(
        &self,
        pages: &mut Pages,
        index: u64,
        bytes: Vec<u8>,
        now: SystemTime,
    ) -> Page {
        match &self.file {
            Some((_, version)) if version.stamp(now) == Stamp::Settled => {
                pages.keep(version, index, bytes)
            }
            _ => Arc::new(bytes),
        }
    }

    /// Returns the time for which the file that was found last may still change without a new version. `None`
    /// if its version is settled, or if the time is unknown because the file system's clock is ahead.
    pub fn unstable_for(&self, now: SystemTime) -> Option<Duration> {
        match self.file.as_ref()?.1.stamp(now) {
            Stamp::Settles(rest) => Some(rest),
            Stamp::Settled | Stamp::Ahead => None,
        }
    }

    /// Closes the open file and directory; for use after [`Step::Answered`](crate::Step::Answered).
    pub fn close(&mut self) {
        (self.file, self.folder) = (None, None);
    }
}

impl From<Errno> for Problem {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP => Self::Missing,
            // `EXDEV`: the path leads out of the directory.
            Errno::ACCESS | Errno::PERM | Errno::XDEV => Self::Forbidden,
            Errno::AGAIN | Errno::MFILE | Errno::NFILE => Self::Busy,
            _ => Self::Unreadable,
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Errno::from_io_error(&error).map_or(Self::Unreadable, Self::from)
    }
}

/// Returns the name of a directory entry, with `/` at its end if the entry is a directory; `None` for `.` and
/// `..`.
fn name_of(entry: &DirEntry) -> Option<Vec<u8>> {
    let name = entry.file_name().to_bytes();
    let mark: &[u8] = if entry.file_type() == FileType::Directory { b"/" } else { b"" };
    (!matches!(name, b"." | b"..")).then(|| [name, mark].concat())
}

/// Maximum number of entries read from a directory.
const MOST_ENTRIES: usize = 100_000;
/// The maximum memory of all lists of names that conversations hold, in bytes. Lists that are being read need
/// additional memory, at most 3 MB each.
const MOST_HELD_BYTES: usize = 64 << 20;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);
/// The flags for opening a file. They include nonblocking mode, because opening a pipe would otherwise wait for
/// a writer.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// The flags that keep every resolved path below the directory.
const WALL: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// The number of shared files at which closed files are first removed from the table.
const FEW_FILES: usize = 64;
const ATTEMPTS: usize = 16;
/// The coarsest tick of a file system's clock: a directory change that is later than another by at least this
/// time gets a later time stamp.
const CLOCK_TICK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;
