//! The application's handle to a host.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::cast::{Cast, CastConfig};

use super::{Opener, TcpListener, TcpStream};
use crate::FastModules;

/// A handle to a host: opens connections and listeners, from any thread.
#[derive(Clone)]
pub struct Handle {
    opener: Arc<dyn Opener>,
}

impl Handle {
    pub(crate) fn new(opener: Arc<dyn Opener>) -> Self {
        Self { opener }
    }

    /// Opens a connection and blocks until it is established.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] if there is no listener, [`io::ErrorKind::TimedOut`] if the peer
    /// does not answer, [`io::ErrorKind::NetworkUnreachable`] without a route,
    /// [`io::ErrorKind::AddrNotAvailable`] if connections to `remote` use all 16,384 ports,
    /// [`io::ErrorKind::QuotaExceeded`] if the limit of connections or of their memory is reached.
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

    /// Opens a connection and blocks until it is established, at most for `timeout`.
    ///
    /// # Errors
    /// The errors of [`Handle::connect`].
    pub fn connect_timeout(&self, remote: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        let stream = self.connect_nonblocking(remote)?;
        stream.wait_connected(Some(timeout))?;
        Ok(stream)
    }

    /// Starts to open a connection; [`TcpStream::is_connected`] returns `true` once it is established. Later
    /// calls on the stream block unless [`TcpStream::set_nonblocking`] is set.
    ///
    /// # Errors
    /// The errors of [`Handle::connect`] that do not depend on the peer.
    pub fn connect_nonblocking(&self, remote: SocketAddr) -> io::Result<TcpStream> {
        self.opener.connect(remote).map(TcpStream::new)
    }

    /// Joins the multicast group `group` for packets from `remote`, and starts to open a connection to
    /// `remote`. The peer may send the connection's data to the group instead of to this host alone (Chan and
    /// Cheriton 2013, section 4), from the port of `remote` to the port of `group`. The host leaves the group
    /// when the connection is closed. If the group cannot be joined, the connection is reset: at most 32 groups
    /// can be joined, and each by one connection.
    ///
    /// # Errors
    /// The errors of [`Handle::connect_nonblocking`]; [`io::ErrorKind::InvalidInput`] if `group` is not a
    /// group that can be joined, [`io::ErrorKind::Unsupported`] on a host with several shards.
    pub fn join_nonblocking(&self, remote: SocketAddr, group: SocketAddr) -> io::Result<TcpStream> {
        self.opener.join(remote, group).map(TcpStream::new)
    }

    /// Listens on `local`. An unspecified address covers all addresses of this host; port 0 selects any free
    /// port. At most `backlog` connections are half-open or wait to be accepted.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrNotAvailable`] if this host does not have the address, [`io::ErrorKind::AddrInUse`]
    /// if another listener uses the address.
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

    /// Opens a cast: one stream to a group of receivers, which connect to `config.local`. A host has one cast
    /// at a time. A new cast replaces the existing cast: the receivers of the existing cast are reset, and its
    /// handle no longer has an effect.
    ///
    /// # Errors
    /// The errors of [`Handle::listen`]; [`io::ErrorKind::InvalidInput`] if a setting is invalid,
    /// [`io::ErrorKind::Unsupported`] if the host has several shards.
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

    /// Returns the modules of the fast path that are on. The modules are equal in all shards.
    pub fn fast_path(&self) -> FastModules {
        self.opener.fast_path()
    }

    /// Turns `modules` of the fast path on and all other modules off, starting with the next batch of each
    /// worker. ACKs that wait in a ring are still processed.
    pub fn set_fast_path(&self, modules: FastModules) {
        self.opener.set_fast_path(modules);
    }

    /// Makes the worker of each shard run one round ([`Host::turn`](crate::Host::turn)) and call its observer,
    /// even if the worker is asleep.
    pub fn wake(&self) {
        self.opener.wake();
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}
