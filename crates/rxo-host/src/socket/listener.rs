//! A listener as an application has it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use super::{Accept, TcpStream, Waiting};
use crate::cell::peer;

/// Waits for connections to this host, like [`std::net::TcpListener`], from any thread. When it is
/// dropped, connections that nobody has accepted are reset.
pub struct TcpListener {
    listener: Arc<dyn Accept>,
    waiting: Waiting,
}

impl TcpListener {
    pub(crate) fn new(listener: Arc<dyn Accept>) -> Self {
        Self { listener, waiting: Waiting::default() }
    }

    /// Waits for a connection and gives it, and its peer's address.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when it shall not wait; [`io::ErrorKind::NotConnected`] when the
    /// host was stopped.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let socket = self.waiting.until(self.listener.signal(), None, || self.listener.accept())?;
        let peer = peer(&socket.pair());
        Ok((TcpStream::new(socket), peer))
    }

    /// The connections, one after the other; it never ends.
    #[must_use]
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// Whether [`TcpListener::accept`] says that it would block instead of waiting.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        self.waiting.set_nonblocking(is_nonblocking);
        Ok(())
    }

    /// What it listens on.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.listener.address())
    }
}

/// The connections of a [`TcpListener`].
#[derive(Debug)]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}

impl AsFd for TcpListener {
    /// Becomes readable when there is something to accept; see
    /// [readiness](TcpStream#readiness).
    ///
    /// # Panics
    /// When the process has no descriptor left.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.waiting.descriptor(self.listener.signal()) {
            Ok(descriptor) => descriptor,
            Err(error) => panic!("no descriptor for the readiness of a listener: {error}"),
        }
    }
}

impl AsRawFd for TcpListener {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TcpListener({})", self.listener.address())
    }
}
