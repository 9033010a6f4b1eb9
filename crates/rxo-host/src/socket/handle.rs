//! The application's handle of a host.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{Opener, TcpListener, TcpStream};

/// A handle of a host, for the threads of applications: opens connections and listeners.
#[derive(Clone)]
pub struct Handle {
    opener: Arc<dyn Opener>,
}

impl Handle {
    pub(crate) fn new(opener: Arc<dyn Opener>) -> Self {
        Self { opener }
    }

    /// Opens a connection and waits until it is open.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] if nobody listens there, [`io::ErrorKind::TimedOut`] if nobody
    /// answers, [`io::ErrorKind::NetworkUnreachable`] without a route, [`io::ErrorKind::AddrNotAvailable`] if
    /// connections to `remote` use all 16,384 ports, [`io::ErrorKind::QuotaExceeded`] if all sockets, or their
    /// memory, are in use.
    pub fn connect(&self, remote: SocketAddr) -> io::Result<TcpStream> {
        let stream = self.connect_nonblocking(remote)?;
        stream.wait_connected(None)?;
        Ok(stream)
    }

    /// Opens a connection and waits until it is open, at most for `timeout`.
    ///
    /// # Errors
    /// As [`Handle::connect`].
    pub fn connect_timeout(&self, remote: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        let stream = self.connect_nonblocking(remote)?;
        stream.wait_connected(Some(timeout))?;
        Ok(stream)
    }

    /// Begins to open a connection. [`TcpStream::is_connected`] says whether it is open. Calls on the stream
    /// block until [`TcpStream::set_nonblocking`].
    ///
    /// # Errors
    /// As [`Handle::connect`], without the errors that depend on the peer.
    pub fn connect_nonblocking(&self, remote: SocketAddr) -> io::Result<TcpStream> {
        self.opener.connect(remote).map(TcpStream::new)
    }

    /// Listens on `local`. An unspecified address means all addresses of this host, port 0 any free port. At
    /// most `backlog` connections are opening or wait to be accepted.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrNotAvailable`] if the address is not this host's, [`io::ErrorKind::AddrInUse`] if
    /// there is a listener on it.
    pub fn listen(&self, local: SocketAddr, backlog: usize) -> io::Result<TcpListener> {
        self.opener.listen(local, backlog).map(TcpListener::new)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}
