//! Locks between processes: at most one rxo uses an interface, or an address on it.
//!
//! A lock is an `flock` on a file that only this user can open, in a folder that only this user can write to.
//! Therefore no other user can take a lock to prevent rxo from starting. The kernel releases a lock when all
//! processes that hold it have ended, for whatever reason. The file stays, and is removed when the next lock is
//! taken. Names belong to the network namespace of the calling thread.
//!
//! Without such a folder, for example for root of a user namespace, a lock is a socket with an abstract name.
//! Abstract names need no folder, but any process of the network namespace can take them.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rxo_device::DeviceError;

use crate::{fault, sys};

/// A lock between processes. The lock is held until this process and all processes forked from it have
/// dropped it or ended.
#[derive(Debug)]
pub struct Lock {
    held: Held,
}

#[derive(Debug)]
enum Held {
    File { file: File },
    Name { socket: UnixDatagram },
}

impl Lock {
    /// Takes the lock `name`, which must be valid as the name of a file. `None` if another process or this
    /// process holds it already. Does not wait.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn try_take(name: &str) -> io::Result<Option<Self>> {
        let held = match Folder::of_this_user() {
            Some(folder) => folder.try_take(&in_this_network(name)?)?,
            None => try_bind(&abstract_name(name))?,
        };
        Ok(held.map(|held| Self { held }))
    }

    /// Shares a lock that another process holds: `file` is the descriptor of the lock, which that process has
    /// handed over.
    pub(crate) fn inherit(file: OwnedFd) -> Self {
        Self { held: Held::File { file: file.into() } }
    }

    /// Returns `true` if a process of root holds the lock `name`. Creates no file, and holds the lock only during
    /// the check.
    ///
    /// # Errors
    /// If this process does not run as root, or the system refuses.
    pub(crate) fn is_taken(name: &str) -> io::Result<bool> {
        if fs::metadata("/proc/thread-self")?.uid() != 0 {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let file = Path::new("/run/rxo").join(in_this_network(name)? + SUFFIX);
        let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(file);
        let has_file =
            file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
        Ok(has_file || try_bind(&abstract_name(name))?.is_none())
    }

    /// Waits for and acquires the lock that protects short operations, such as the takeover of a socket file.
    ///
    /// # Errors
    /// If there is no folder for locks, or the system refuses.
    pub(crate) fn brief() -> io::Result<Self> {
        let folder = Folder::of_this_user().ok_or(ErrorKind::Unsupported)?;
        Ok(Self { held: Held::File { file: folder.enter()? } })
    }
}

/// Returns the folder of this user's locks, and creates it if it does not exist; `None` if there can be no
/// such folder.
#[must_use]
pub fn lock_folder() -> Option<PathBuf> {
    Folder::of_this_user().map(|folder| folder.0)
}

/// A folder that contains lock files, and that only this user can change.
struct Folder(PathBuf);

impl Folder {
    /// Returns the folder in `/run` for root, in `$XDG_RUNTIME_DIR` for other users. `None` if it cannot be
    /// created, or other users can change it.
    fn of_this_user() -> Option<Self> {
        let user = fs::metadata("/proc/thread-self").ok()?.uid();
        Self::in_folder(&Self::parent_of(user)?, user)
    }

    fn parent_of(user: u32) -> Option<PathBuf> {
        match user {
            0 => Some(PathBuf::from("/run")),
            _ => std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
        }
    }

    /// Returns `true` if only this user can change the folder.
    fn is_own(found: &fs::Metadata, user: u32) -> bool {
        found.is_dir() && found.uid() == user && found.mode() & OTHERS_WRITE == 0
    }

    fn in_folder(parent: &Path, user: u32) -> Option<Self> {
        let path = parent.join("rxo");
        // The folder may exist already.
        _ = DirBuilder::new().mode(0o700).create(&path);
        let found = fs::symlink_metadata(&path).ok()?;
        let is_own = Self::is_own(&found, user);
        let folder = Self(path);
        (is_own && folder.open(ENTRANCE).is_ok()).then_some(folder)
    }

    /// Acquires the entrance file, which serializes the processes that take a lock; blocks until it is free. The
    /// caller drops it as soon as its lock is taken.
    fn enter(&self) -> io::Result<File> {
        let entrance = self.open(ENTRANCE)?;
        entrance.lock()?;
        Ok(entrance)
    }

    fn try_take(&self, name: &str) -> io::Result<Option<Held>> {
        let _entrance = self.enter()?;
        self.sweep();
        let file = self.open(&format!("{name}{SUFFIX}"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Held::File { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Removes the files of locks that no process holds.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_lock = name.to_str().is_some_and(|name| name.ends_with(SUFFIX));
            if is_lock && self.open_name(&name).is_ok_and(|file| file.try_lock().is_ok()) {
                _ = fs::remove_file(entry.path());
            }
        }
    }

    fn open(&self, name: &str) -> io::Result<File> {
        self.open_name(name.as_ref())
    }

    fn open_name(&self, name: &std::ffi::OsStr) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW).open(self.0.join(name))
    }
}

fn in_this_network(name: &str) -> io::Result<String> {
    Ok(format!("{}-{name}", fs::metadata("/proc/thread-self/ns/net")?.ino()))
}

fn abstract_name(name: &str) -> String {
    format!("rxo {name}")
}

fn try_bind(name: &str) -> io::Result<Option<Held>> {
    match UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?) {
        Ok(socket) => Ok(Some(Held::Name { socket })),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the folder of locks, with `Ok` if this process can create files there, and an error if it cannot.
/// Creates nothing.
pub(crate) fn folder() -> io::Result<(PathBuf, io::Result<()>)> {
    let user = fs::metadata("/proc/thread-self")?.uid();
    let parent = Folder::parent_of(user).ok_or(ErrorKind::NotFound)?;
    let path = parent.join("rxo");
    let is_safe = fs::symlink_metadata(&path).map_or(true, |found| Folder::is_own(&found, user));
    let writable = if is_safe { sys::may_make(&path) } else { Err(ErrorKind::InvalidData.into()) };
    Ok((path, writable))
}

/// The name of the file that every process locks while it takes a lock.
const ENTRANCE: &str = "locks";
const SUFFIX: &str = ".lock";
const OTHERS_WRITE: u32 = 0o022;

/// The lock of an interface, held until this process and all processes forked from it have dropped it or
/// ended.
#[derive(Debug)]
pub(crate) struct InterfaceLock {
    lock: Lock,
}

/// Maximum number of attempts to take an interface's lock: a run that is ending holds the lock for some
/// milliseconds more.
const ATTEMPTS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(25);

impl InterfaceLock {
    /// Takes the lock of the interface with this index. Messages call the interface `device`. Waits up to a
    /// second for a run that is ending.
    ///
    /// # Errors
    /// If another rxo still holds the lock.
    pub(crate) fn take(device: &str, index: u32) -> Result<Self, DeviceError> {
        let take = || {
            let taken = Lock::try_take(&Self::name(index));
            taken.map_err(|error| fault::system(format!("cannot lock {device}"), error))
        };
        for _ in 1..ATTEMPTS {
            if let Some(lock) = take()? {
                return Ok(Self { lock });
            }
            thread::sleep(BETWEEN);
        }
        let in_use = || {
            let text = format!("{device} is in use by another rxo; end that one first");
            fault::system(text, io::Error::from_raw_os_error(libc::EADDRINUSE))
        };
        take()?.map(|lock| Self { lock }).ok_or_else(in_use)
    }

    /// Returns `true` if another rxo has locked the interface with this index.
    ///
    /// # Errors
    /// Returns the errors of [`Lock::is_taken`].
    pub(crate) fn is_taken(index: u32) -> io::Result<bool> {
        Lock::is_taken(&Self::name(index))
    }

    fn name(index: u32) -> String {
        format!("interface-{index}")
    }
}

/// Returns the descriptor of the lock. A process that receives a copy of it holds the lock too.
impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.held {
            Held::File { file } => file.as_fd(),
            Held::Name { socket } => socket.as_fd(),
        }
    }
}

impl AsFd for InterfaceLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// An index that no interface has.
    const INDEX: u32 = u32::MAX;

    #[test]
    fn the_second_is_refused_until_the_first_is_gone() {
        let first = InterfaceLock::take("packet:eth1", INDEX).unwrap();
        let said = InterfaceLock::take("packet:eth1", INDEX).unwrap_err().to_string();
        assert!(said.starts_with("packet:eth1 is in use by another rxo"), "{said}");
        drop(first);
        InterfaceLock::take("packet:eth1", INDEX).unwrap();
    }

    /// Creates a parent for a folder of locks, and returns it with the user who owns it.
    fn parent(name: &str) -> (PathBuf, u32) {
        let path = std::env::temp_dir().join(format!("rxo-locks-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let user = fs::metadata(&path).unwrap().uid();
        (path, user)
    }

    fn names(folder: &Folder) -> Vec<String> {
        let name =
            |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn nobody_else_can_open_a_lock_and_what_a_process_left_is_removed() {
        let (path, user) = parent("left");
        let folder = Folder::in_folder(&path, user).unwrap();
        assert_eq!(fs::metadata(&folder.0).unwrap().mode() & 0o777, 0o700);
        let first = folder.try_take("a").unwrap();
        drop(folder.try_take("b").unwrap());
        assert_eq!(names(&folder), ["a.lock", "b.lock", "locks"]);
        assert!(folder.try_take("a").unwrap().is_none(), "it is held");
        assert_eq!(names(&folder), ["a.lock", "locks"], "what is held stays");
        assert_eq!(fs::metadata(folder.0.join("a.lock")).unwrap().mode() & 0o777, 0o600);
        drop(first);
        assert!(folder.try_take("a").unwrap().is_some());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_change_is_not_used() {
        let (path, user) = parent("others");
        let folder = path.join("rxo");
        fs::create_dir(&folder).unwrap();
        for (mode, is_used) in [(0o777, false), (0o770, false), (0o755, true), (0o700, true)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Folder::in_folder(&path, user).is_some(), is_used, "{mode:o}");
        }
        assert!(Folder::in_folder(&path, user + 1).is_none(), "it is another's");
        fs::rename(&folder, path.join("elsewhere")).unwrap();
        symlink(path.join("elsewhere"), &folder).unwrap();
        assert!(
            Folder::in_folder(&path, user).is_none(),
            "a link may lead to one that is another's"
        );
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn of_many_that_take_a_lock_at_once_one_has_it() {
        let (path, user) = parent("at-once");
        for _ in 0..100 {
            let take = || Folder::in_folder(&path, user).unwrap().try_take("a").unwrap();
            let taken: Vec<_> = thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(take));
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(taken.len(), 1);
        }
        fs::remove_dir_all(path).unwrap();
    }
}
