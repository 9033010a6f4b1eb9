//! The application's handle of a host.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rxo_wire::FlowKey;

use super::listening::{BoundListener, worker_ended};
use super::{Accept, Listening, TcpListener, TcpStream};
use crate::cell::{Bound, Cell, Socket};
use crate::post::{Command, Post};

/// A handle of a host, for the threads of applications: opens connections and listeners.
#[derive(Clone)]
pub struct Handle {
    opener: Arc<dyn Opener>,
}

/// The commands of a handle, for any type of buffer.
pub(crate) trait Opener: Send + Sync {
    fn connect(self: Arc<Self>, remote: SocketAddr) -> io::Result<Arc<dyn Socket>>;
    fn listen(self: Arc<Self>, local: SocketAddr, backlog: usize) -> io::Result<Arc<dyn Accept>>;
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
        Arc::clone(&self.opener).connect(remote).map(TcpStream::new)
    }

    /// Listens on `local`. An unspecified address means all addresses of this host, port 0 any free port. At
    /// most `backlog` connections are opening or wait to be accepted.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrNotAvailable`] if the address is not this host's, [`io::ErrorKind::AddrInUse`] if
    /// there is a listener on it.
    pub fn listen(&self, local: SocketAddr, backlog: usize) -> io::Result<TcpListener> {
        Arc::clone(&self.opener).listen(local, backlog).map(TcpListener::new)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Opener for Post<B> {
    fn connect(self: Arc<Self>, remote: SocketAddr) -> io::Result<Arc<dyn Socket>> {
        if self.is_closed() {
            return Err(worker_ended());
        }
        let source = self.settings.link.source_for(remote.ip());
        let source = source.ok_or_else(|| no_route(remote.ip()))?;
        if !self.take_socket() {
            let message = format!("all {} sockets are in use", self.settings.sockets);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        }
        let cell = cell(&self, source, remote).inspect_err(|_| self.give_back_socket())?;
        self.send(Command::Open(Arc::clone(&cell)));
        Ok(Bound::bind(cell))
    }

    fn listen(self: Arc<Self>, local: SocketAddr, backlog: usize) -> io::Result<Arc<dyn Accept>> {
        if self.is_closed() {
            return Err(worker_ended());
        }
        if !local.ip().is_unspecified() && !self.settings.link.is_ours(local.ip()) {
            let message = format!("{} is not an address of this host", local.ip());
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        let local = self.listeners.take(local)?;
        let listening = Listening::new(local, backlog);
        self.send(Command::Listen(Arc::clone(&listening)));
        Ok(BoundListener::bind(listening, self))
    }
}

/// A cell for a connection to be opened. Its port is none on which there is a listener.
fn cell<B: AsRef<[u8]>>(
    post: &Arc<Post<B>>,
    source: IpAddr,
    remote: SocketAddr,
) -> io::Result<Arc<Cell<B>>> {
    let source = SocketAddr::new(source, 0);
    let pair = post.ports().take(source, remote, &post.listeners.ports());
    let pair = pair.ok_or_else(|| no_port(remote))?;
    let made = new_cell(post, pair);
    made.inspect_err(|_| post.ports().give_back(&pair))
}

fn new_cell<B: AsRef<[u8]>>(post: &Arc<Post<B>>, pair: FlowKey) -> io::Result<Arc<Cell<B>>> {
    let share = post.memory().reserve(post.settings.tcp(&pair)).ok_or_else(no_memory)?;
    match post.settings.connection(pair, share) {
        Ok(connection) => Ok(Cell::new(connection, share, Arc::clone(post))),
        Err(error) => {
            post.memory().give_back(share);
            Err(io::Error::other(error))
        }
    }
}

fn no_memory() -> io::Error {
    let message = "all memory for connections is in use; close some, or give the host more";
    io::Error::new(io::ErrorKind::QuotaExceeded, message)
}

fn no_route(remote: IpAddr) -> io::Error {
    let message = format!("no route to {remote}; give the host an address or a route for it");
    io::Error::new(io::ErrorKind::NetworkUnreachable, message)
}

fn no_port(remote: SocketAddr) -> io::Error {
    let message = format!("all ports are taken by connections to {remote}; close some");
    io::Error::new(io::ErrorKind::AddrNotAvailable, message)
}
