//! The application's handle to a listener.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use super::{Accept, TcpStream, Waiting};
use crate::cell::Signal;

/// Accepts connections to this host, like [`std::net::TcpListener`]; usable from any thread. Dropping the
/// listener resets connections that were not accepted.
pub struct TcpListener {
    pub(super) listener: Arc<dyn Accept>,
    waiting: Waiting,
}

impl TcpListener {
    pub(crate) fn new(listener: Arc<dyn Accept>) -> Self {
        Self { listener, waiting: Waiting::default() }
    }

    /// Blocks until there is a connection, and returns it with the peer's address.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the listener is nonblocking and no connection waits;
    /// [`io::ErrorKind::NotConnected`] if the host was stopped.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let socket = self.waiting.until(self.listener.signal(), None, || self.listener.accept())?;
        let peer = socket.pair().receiver();
        Ok((TcpStream::new(socket), peer))
    }

    /// Returns an endless iterator that accepts connections.
    #[must_use]
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// Makes [`TcpListener::accept`] return an error instead of blocking if `is_nonblocking` is set.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        self.waiting.set_nonblocking(is_nonblocking);
        Ok(())
    }

    pub(super) fn signal(&self) -> &Signal {
        self.listener.signal()
    }

    /// Returns the local address and port.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.listener.address())
    }
}

/// An iterator over the connections that a [`TcpListener`] accepts.
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
    /// Returns a descriptor that becomes readable when a connection can be accepted; see
    /// [readiness](TcpStream#readiness).
    ///
    /// # Panics
    /// If the process cannot open another descriptor.
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
