//! The application's handle of a host.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::cast::{Cast, CastConfig};

use super::{Opener, TcpListener, TcpStream};
use crate::FastSwitches;

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
    ///
    /// # Examples
    /// Another thread runs the host:
    /// ```no_run
    /// use std::io::{self, Read, Write};
    ///
    /// use rxo_host::Handle;
    ///
    /// fn fetch(handle: &Handle) -> io::Result<String> {
    ///     let mut stream = handle.connect(([10, 0, 0, 2], 80).into())?;
    ///     stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    ///     let mut page = String::new();
    ///     stream.read_to_string(&mut page)?;
    ///     Ok(page)
    /// }
    /// ```
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

    /// Joins the multicast group `group` for packets from `remote`, and begins to open a connection to `remote`, whose
    /// text may come to the group instead of this host alone (Chan and Cheriton 2013, section 4): from the port of
    /// `remote` to the port of `group`. The host belongs to the group until the connection is over. A connection that
    /// cannot join, because there are 32 groups or another connection has this one, is reset.
    ///
    /// # Errors
    /// As [`Handle::connect_nonblocking`]; [`io::ErrorKind::InvalidInput`] if the address is no group that can be joined,
    /// [`io::ErrorKind::Unsupported`] on a host in several shards.
    pub fn join_nonblocking(&self, remote: SocketAddr, group: SocketAddr) -> io::Result<TcpStream> {
        self.opener.join(remote, group).map(TcpStream::new)
    }

    /// Listens on `local`. An unspecified address means all addresses of this host, port 0 any free port. At
    /// most `backlog` connections are opening or wait to be accepted.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrNotAvailable`] if the address is not this host's, [`io::ErrorKind::AddrInUse`] if
    /// there is a listener on it.
    ///
    /// # Examples
    /// Another thread runs the host:
    /// ```no_run
    /// use std::io::{self, Write};
    ///
    /// use rxo_host::Handle;
    ///
    /// fn greet(handle: &Handle) -> io::Result<()> {
    ///     let listener = handle.listen(([0, 0, 0, 0], 80).into(), 128)?;
    ///     loop {
    ///         let (mut stream, peer) = listener.accept()?;
    ///         writeln!(stream, "hello, {peer}")?;
    ///     }
    /// }
    /// ```
    pub fn listen(&self, local: SocketAddr, backlog: usize) -> io::Result<TcpListener> {
        self.opener.listen(local, backlog).map(TcpListener::new)
    }

    /// Opens a cast: one stream to a group of receivers, which connect to `config.local`. A host has one at a time: a new
    /// one replaces it, whose receivers are reset, and whose handle does nothing from then on.
    ///
    /// # Errors
    /// As [`Handle::listen`]; [`io::ErrorKind::InvalidInput`] if a setting is invalid, [`io::ErrorKind::Unsupported`] if
    /// the host has several workers.
    ///
    /// # Examples
    /// ```no_run
    /// use std::io;
    ///
    /// use rxo_frame::SharedBytes;
    /// use rxo_host::{CastConfig, Handle};
    ///
    /// fn send(handle: &Handle, config: CastConfig, text: Vec<u8>) -> io::Result<()> {
    ///     let mut cast = handle.cast(config)?;
    ///     // Receivers connect meanwhile.
    ///     cast.start();
    ///     cast.write(&mut SharedBytes::from(text));
    ///     Ok(())
    /// }
    /// ```
    pub fn cast(&self, config: CastConfig) -> io::Result<Cast> {
        self.opener.cast(config)
    }

    /// The switches of the fast path: which modules look at frames before the engine.
    #[must_use]
    pub fn fast_path(&self) -> FastSwitches {
        self.opener.fast_path()
    }

    /// Ends the worker's wait, if it waits: its turn is over soon, and its observer is called.
    pub fn wake(&self) {
        self.opener.wake();
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}
