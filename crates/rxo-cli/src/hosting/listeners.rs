//! Listeners on several addresses of a host, as one.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context, Result};
use rxo_driver::wait::wait_readable;
use rxo_host::{Handle, TcpListener, TcpStream};

/// Non-blocking listeners.
pub(crate) struct Listeners(Vec<TcpListener>);

impl Listeners {
    /// Listens on all `addresses`, each with `backlog` connections that may wait.
    ///
    /// # Errors
    /// If a port is taken, or the host has ended.
    pub(crate) fn open(
        host: &Handle,
        addresses: impl IntoIterator<Item = SocketAddr>,
        backlog: usize,
    ) -> Result<Self> {
        let listen = |address| {
            let listener = host.listen(address, backlog);
            let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        addresses.into_iter().map(listen).collect::<Result<_>>().map(Self)
    }

    /// Accepts the next connection; `None` if none came within `time`, or a signal came.
    ///
    /// # Errors
    /// If the host has ended.
    pub(crate) fn accept_within(
        &self,
        time: Duration,
    ) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        if let Some(accepted) = self.accept()? {
            return Ok(Some(accepted));
        }
        let descriptors: Vec<_> = self.0.iter().map(AsFd::as_fd).collect();
        wait_readable(&descriptors, Some(time))?;
        self.accept()
    }

    fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        for listener in &self.0 {
            match listener.accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                accepted => return accepted.map(Some),
            }
        }
        Ok(None)
    }
}
