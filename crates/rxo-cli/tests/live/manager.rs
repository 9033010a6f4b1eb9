//! A service manager: the socket on which a service reports that it works.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use crate::process::LONG;
use crate::report::Scratch;

/// The socket of `NOTIFY_SOCKET`.
pub(crate) struct Manager {
    socket: UnixDatagram,
    scratch: Scratch,
}

impl Manager {
    /// A socket in a directory that is named after `name`.
    pub(crate) fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let socket = UnixDatagram::bind(scratch.file("notify")).unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        Self { socket, scratch }
    }

    /// The value of `NOTIFY_SOCKET`.
    pub(crate) fn path(&self) -> PathBuf {
        self.scratch.file("notify")
    }

    /// The next message.
    pub(crate) fn next(&self) -> String {
        let mut bytes = [0; 100];
        let read = self.socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }
}
