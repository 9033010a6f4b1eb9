//! Listener: a unix socket at a path, to which other processes connect.
//!
//! This module is separate because the sockets for guests (`vhost:PATH`) and those for control programs follow
//! the same rules. The socket file of a killed process is replaced, but not the socket file of a running process.
//! If several processes bind the same path at once, exactly one succeeds. The path appears only once the socket
//! listens. When the [`Listener`] is dropped, the file is removed, unless another process has replaced it.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rxo_device::DeviceError;

use crate::lock::Lock;
use crate::vhost_user::connect;
use crate::{fault, sys, wait};

/// A bound socket. Dropping it removes its file, unless another process has replaced the file.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// The device and inode numbers of the file, because another process may replace it; `None` if they could not
    /// be read.
    identity: Option<(u64, u64)>,
    removes: bool,
}

/// The users that may connect to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The users that the umask of the process permits may connect.
    ByUmask,
    /// Only the user of this process, and root, may connect. The file has mode 0600 from the moment it
    /// exists.
    OwnerOnly,
}

impl Listener {
    /// Maximum number of connections that can wait to be accepted.
    pub(crate) const MOST_WAITING: u16 = 128;

    /// Binds the socket to `path`; messages call the socket `label`. Takes over the file of a killed process,
    /// on which no process listens. If several processes bind the same path at once, a lock lets exactly one
    /// succeed.
    ///
    /// # Errors
    /// Returns the errors of [`Listener::check`], and an error if the system refuses.
    pub fn bind(label: &str, path: &Path, access: Access) -> Result<Self, DeviceError> {
        let _folder = lock_folder(label, path, LOCK_ATTEMPTS)?;
        occupant(label, path)?;
        let socket = bind_complete(path, access).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::PermissionDenied => "choose a folder that this user may write to",
                io::ErrorKind::InvalidInput => "its path is too long for a socket; shorten it",
                _ => "the system refused",
            };
            fault::system(format!("cannot open {label}; {remedy}"), error)
        })?;
        let mut listener = Self::inherit(socket.into(), path);
        listener.removes = true;
        Ok(listener)
    }

    /// Continues with a socket that another process has bound to `path` and has handed over. The file stays when this value is
    /// dropped, because the other process may continue: call [`remove_stale`] after both have ended.
    #[must_use]
    pub fn inherit(socket: OwnedFd, path: &Path) -> Self {
        let identity = identity(path);
        Self { socket: socket.into(), path: path.to_owned(), identity, removes: false }
    }

    /// Checks that a socket may be bound at `path`. Changes nothing.
    ///
    /// # Errors
    /// If a process listens there, or the path is a file of another kind.
    pub fn check(label: &str, path: &Path) -> Result<(), DeviceError> {
        occupant(label, path).map(|_| ())
    }

    /// Accepts the next connection; `None` if none is waiting. Never blocks.
    ///
    /// # Errors
    /// If a connection cannot be accepted now, for example for lack of descriptors. The connection stays in
    /// the queue.
    pub fn accept(&self) -> io::Result<Option<UnixStream>> {
        loop {
            return match self.socket.accept() {
                Ok((stream, _)) => Ok(Some(stream)),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    io::ErrorKind::WouldBlock => Ok(None),
                    _ => Err(error),
                },
            };
        }
    }

    /// Returns a second descriptor of the socket, for another thread. The descriptor outlives this value; the
    /// socket's file does not.
    ///
    /// # Errors
    /// If the system has no free descriptor.
    pub fn socket(&self) -> io::Result<UnixListener> {
        self.socket.try_clone()
    }

    /// Closes the socket in this process and keeps the file, because another process of this run accepts its
    /// connections.
    pub fn leave(mut self) {
        self.removes = false;
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.removes && self.identity.is_some() && identity(&self.path) == self.identity {
            // The file may be gone already.
            let _gone = fs::remove_file(&self.path);
        }
    }
}

/// Removes the socket file at `path` if no process listens on the socket, unless another process is about to take
/// over the file.
pub fn remove_stale(path: &Path) {
    let label = path.display().to_string();
    let Ok(_folder) = lock_folder(&label, path, 1) else { return };
    if matches!(occupant(&label, path), Ok(Occupant::Stale)) {
        let _gone = fs::remove_file(path);
    }
}

/// Binds `path`, and replaces an existing file. The file gets its final name only once the socket listens, so no
/// client that sees it is refused. A process that is killed in between leaves a temporary file, which the next
/// process removes.
fn bind_complete(path: &Path, access: Access) -> io::Result<UnixListener> {
    let unfinished = path.with_extension("~");
    if fs::symlink_metadata(&unfinished).is_ok_and(|found| found.file_type().is_socket()) {
        fs::remove_file(&unfinished)?;
    }
    let mut socket = sys::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    if access == Access::OwnerOnly {
        // The file gets the mode of the socket, less the umask, so it never has another mode.
        let file = File::from(socket);
        file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
        socket = OwnedFd::from(file);
    }
    sys::listen_unix(socket.as_fd(), &unfinished, libc::c_int::from(Listener::MOST_WAITING))?;
    let named = fs::rename(&unfinished, path);
    named.inspect_err(|_| _ = fs::remove_file(&unfinished))?;
    Ok(socket.into())
}

const OWNER_ONLY: u32 = 0o600;

/// The lock that a process holds while it takes over or removes a socket file, so that no other process does
/// so at the same time.
#[derive(Debug)]
enum Taking {
    /// A lock file that only this user can lock.
    Lock { _lock: Lock },
    /// The socket file's folder itself, if there can be no lock file. Any user who can read the folder can
    /// lock it.
    Folder { _folder: File },
}

/// Takes the lock for taking over socket files, or locks the folder of `path` if there can be no lock file.
/// The lock is held until the returned value is dropped or this process ends.
fn lock_folder(label: &str, path: &Path, attempts: u32) -> Result<Taking, DeviceError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "its folder does not exist; make it first",
            _ => "choose a folder that this user may read and write to",
        };
        fault::system(format!("cannot open {label}: {remedy}"), error)
    })?;
    if let Ok(lock) = Lock::brief() {
        return Ok(Taking::Lock { _lock: lock });
    }
    lock(label, &folder, attempts)?;
    Ok(Taking::Folder { _folder: folder })
}

fn lock(label: &str, folder: &File, attempts: u32) -> Result<(), DeviceError> {
    for _ in 0..attempts {
        match folder.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => wait::pause(BETWEEN_ATTEMPTS),
            Err(TryLockError::Error(error)) => {
                let text =
                    format!("cannot open {label}: its folder cannot be locked; choose one in /run");
                return Err(fault::system(text, error));
            }
        }
    }
    Err(fault::system(
        format!("cannot open {label}: another process has locked its folder; choose another one"),
        io::ErrorKind::WouldBlock.into(),
    ))
}

/// Maximum number of attempts to lock a folder. A process that starts at the same moment holds the lock for
/// less than a millisecond.
const LOCK_ATTEMPTS: u32 = 400;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(25);

/// The file at a socket's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occupant {
    Nothing,
    /// A socket file on which no process listens.
    Stale,
}

/// Checks the file at `path`.
///
/// # Errors
/// If a process listens there, or the file is not a socket.
fn occupant(label: &str, path: &Path) -> Result<Occupant, DeviceError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(Occupant::Nothing) };
    if !found.file_type().is_socket() {
        return Err(DeviceError::Usage(format!(
            "cannot open {label}: there is a file that is no socket; choose another path"
        )));
    }
    // A process that listens but accepts nothing has a full queue; this call returns an error then, and does
    // not block.
    match connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(Occupant::Stale),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Occupant::Nothing),
        _ => Err(fault::system(
            format!("cannot open {label}: a process listens there; end it or choose another path"),
            io::Error::from_raw_os_error(libc::EADDRINUSE),
        )),
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("rxo-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_stale_socket_is_taken_over_and_a_live_one_refused() {
        let folder = folder("listener");
        let path = folder.join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "as SIGKILL leaves it");
        let listener = Listener::bind("vhost:a", &path, Access::ByUmask).unwrap();
        let line = Listener::bind("vhost:a", &path, Access::ByUmask).unwrap_err().to_string();
        assert!(line.starts_with("cannot open vhost:a: a process listens there; end it"), "{line}");
        drop(listener);
        assert!(!path.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    /// Each process finds a stale socket; without the lock, the last one to bind would take it from the
    /// others.
    #[test]
    fn of_several_that_start_at_once_one_listens() {
        let folder = folder("at-once");
        let path = folder.join("a.sock");
        for _ in 0..50 {
            drop(UnixListener::bind(&path).unwrap());
            let start = Barrier::new(4);
            let bind = || {
                start.wait();
                Listener::bind("vhost:a", &path, Access::ByUmask).ok()
            };
            let bound: Vec<_> = thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(bind));
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(bound.len(), 1);
            let _client = UnixStream::connect(&path).unwrap();
            assert!(bound[0].accept().unwrap().is_some(), "the one that says it listens");
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left");
        fs::remove_dir_all(folder).unwrap();
    }

    /// The queue of the socket is full, so a blocking connection would wait until one is accepted.
    #[test]
    fn one_who_listens_and_accepts_nobody_is_recognized() {
        let folder = folder("full");
        let path = folder.join("a.sock");
        let listener = UnixListener::bind(&path).unwrap();
        shorten_queue(&listener);
        let waiting = std::iter::from_fn(|| connect(&path).ok()).collect::<Vec<_>>();
        assert!(!waiting.is_empty());
        let line = occupant("vhost:a", &path).unwrap_err().to_string();
        assert!(line.starts_with("cannot open vhost:a: a process listens there"), "{line}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[allow(unsafe_code, reason = "the standard library sets no length of the queue")]
    fn shorten_queue(listener: &UnixListener) {
        // SAFETY: the call takes only numbers.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 1) }, 0);
    }

    #[test]
    fn a_folder_that_cannot_be_locked_is_not_called_locked() {
        let folder = folder("lock");
        let held = File::open(&folder).unwrap();
        held.lock().unwrap();
        let said = |file: &File| lock("vhost:a", file, 1).unwrap_err().to_string();
        let line = said(&File::open(&folder).unwrap());
        assert!(line.contains("another process has locked its folder"), "{line}");
        // A descriptor opened with `O_PATH` can be locked by nobody.
        let path_only = File::options().read(true).custom_flags(libc::O_PATH).open(&folder);
        let line = said(&path_only.unwrap());
        assert!(line.contains("its folder cannot be locked; choose one in /run"), "{line}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_killed_start_left_is_removed() {
        let folder = folder("killed");
        let path = folder.join("a.sock");
        drop(UnixListener::bind(path.with_extension("~")).unwrap());
        drop(Listener::bind("vhost:a", &path, Access::ByUmask).unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_a_file_of_its_own_is_removed() {
        let folder = folder("own");
        let path = folder.join("a.sock");
        let listener = Listener::bind("vhost:a", &path, Access::ByUmask).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop(listener);
        assert_eq!(fs::read(&path).unwrap(), b"another's");
        let line = Listener::bind("vhost:a", &path, Access::ByUmask).unwrap_err().to_string();
        assert!(line.contains("a file that is no socket"), "{line}");
        let line = Listener::bind("vhost:a", &folder.join("b/c"), Access::ByUmask)
            .unwrap_err()
            .to_string();
        assert!(line.contains("its folder does not exist"), "{line}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_file_of_an_owner_is_so_from_its_first_moment() {
        let folder = folder("mode");
        let path = folder.join("a.sock");
        let mode = || fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
        let listener = Listener::bind("--control a", &path, Access::OwnerOnly).unwrap();
        assert_eq!(mode(), 0o600);
        // The temporary file is bound with the same mode, so no later change is needed.
        let socket = bind_complete(&folder.join("b.sock"), Access::OwnerOnly).unwrap();
        let of_socket = File::from(OwnedFd::from(socket)).metadata().unwrap();
        assert_eq!(of_socket.permissions().mode() & 0o777, 0o600);
        drop(listener);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_left_is_removed_only_when_nobody_listens() {
        let folder = folder("left");
        let path = folder.join("a.sock");
        let listener = Listener::bind("a", &path, Access::OwnerOnly).unwrap();
        let other = listener.socket().unwrap();
        listener.leave();
        remove_stale(&path);
        assert!(path.exists(), "another process listens");
        drop(other);
        remove_stale(&path);
        assert!(!path.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_path_that_is_too_long_is_called_so() {
        let folder = folder("long");
        let path = folder.join("a".repeat(120));
        let line = Listener::bind("a", &path, Access::OwnerOnly).unwrap_err().to_string();
        assert!(line.contains("its path is too long for a socket; shorten it"), "{line}");
        fs::remove_dir_all(folder).unwrap();
    }
}
