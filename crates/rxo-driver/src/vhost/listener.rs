//! The socket on which front ends connect.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rxo_device::DeviceError;

use crate::fault;

/// A bound socket. Its file is removed when this is dropped, if it is still the same.
#[derive(Debug)]
pub(super) struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the file.
    identity: Option<(u64, u64)>,
}

impl Listener {
    /// Binds the socket. Takes over the file of a process that was killed: one that nobody listens on.
    pub(super) fn bind(label: &str, path: &Path) -> Result<Self, DeviceError> {
        let cannot =
            |error| fault::system(format!("cannot open {label}; the system refused"), error);
        occupant(label, path)?;
        // The file gets its name when the socket listens, so that nobody is refused who sees it.
        let nameless = path.with_extension(std::process::id().to_string());
        let socket = UnixListener::bind(&nameless).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => fault::system(
                format!("cannot open {label}: its folder does not exist; make it first"),
                error,
            ),
            io::ErrorKind::PermissionDenied => fault::system(
                format!("cannot open {label}; choose a folder that this user may write to"),
                error,
            ),
            _ => cannot(error),
        })?;
        let named = socket.set_nonblocking(true).and_then(|()| fs::rename(&nameless, path));
        named.inspect_err(|_| _ = fs::remove_file(&nameless)).map_err(cannot)?;
        Ok(Self { socket, identity: identity(path), path: path.to_owned() })
    }

    /// The next connection; `None` if there is none.
    pub(super) fn accept(&self) -> Option<UnixStream> {
        self.socket.accept().ok().map(|(stream, _)| stream)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            // It may be gone already, which is as well.
            let _gone = fs::remove_file(&self.path);
        }
    }
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occupant {
    Nothing,
    /// A socket on which nobody listens.
    Stale,
}

/// What is at `path`.
///
/// # Errors
/// If somebody listens there, or it is no socket.
pub(super) fn occupant(label: &str, path: &Path) -> Result<Occupant, DeviceError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(Occupant::Nothing) };
    if !found.file_type().is_socket() {
        return Err(DeviceError::Usage(format!(
            "cannot open {label}: there is a file that is no socket; choose another path"
        )));
    }
    match UnixStream::connect(path) {
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
        let listener = Listener::bind("vhost:a", &path).unwrap();
        let line = Listener::bind("vhost:a", &path).unwrap_err().to_string();
        assert!(line.starts_with("cannot open vhost:a: a process listens there; end it"), "{line}");
        drop(listener);
        assert!(!path.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_a_file_of_its_own_is_removed() {
        let folder = folder("own");
        let path = folder.join("a.sock");
        let listener = Listener::bind("vhost:a", &path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop(listener);
        assert_eq!(fs::read(&path).unwrap(), b"another's");
        let line = Listener::bind("vhost:a", &path).unwrap_err().to_string();
        assert!(line.contains("a file that is no socket"), "{line}");
        let line = Listener::bind("vhost:a", &folder.join("b/c")).unwrap_err().to_string();
        assert!(line.contains("its folder does not exist"), "{line}");
        fs::remove_dir_all(folder).unwrap();
    }
}
