//! A service manager: the socket on which a service reports its state.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use crate::process::LONG;
use crate::report::Scratch;

/// The socket that `NOTIFY_SOCKET` names.
pub(crate) struct Manager {
    socket: UnixDatagram,
    scratch: Scratch,
}

impl Manager {
    /// Binds a socket in a directory named after `name`.
    pub(crate) fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let socket = UnixDatagram::bind(scratch.file("notify")).unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        Self { socket, scratch }
    }

    /// Returns the value of `NOTIFY_SOCKET`.
    pub(crate) fn path(&self) -> PathBuf {
        self.scratch.file("notify")
    }

    /// Returns the next message; waits for it.
    pub(crate) fn next(&self) -> String {
        let mut bytes = [0; 100];
        let read = self.socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }
}
