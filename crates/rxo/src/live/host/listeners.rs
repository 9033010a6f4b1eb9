//! Listeners on several addresses of a host, combined into one.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rxo_driver::wait::wait_readable;
use rxo_host::{Handle, Readiness, TcpListener, TcpStream};

/// Listeners on several addresses of a host, used like a single listener.
#[derive(Debug)]
pub struct Listeners {
    all: Vec<TcpListener>,
    /// The number of calls of `accept` so far: each call begins with another listener than the call before.
    calls: AtomicUsize,
}

impl Listeners {
    /// Listens on all `addresses` of `host`. On each address, up to `backlog` connections may wait to be
    /// accepted.
    ///
    /// # Errors
    /// If a port is in use, or the host has ended; the error message names the address.
    pub fn open(
        host: &Handle,
        addresses: impl IntoIterator<Item = SocketAddr>,
        backlog: usize,
    ) -> io::Result<Self> {
        let listen = |address| {
            let listener = host.listen(address, backlog).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            })?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let all = addresses.into_iter().map(listen).collect::<io::Result<_>>()?;
        Ok(Self { all, calls: AtomicUsize::new(0) })
    }

    /// Accepts the next connection; `None` if no connection arrives within `time`, or a signal interrupts the wait.
    ///
    /// # Errors
    /// If the host has ended.
    pub fn accept_within(&self, time: Duration) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        if let Some(accepted) = self.accept()? {
            return Ok(Some(accepted));
        }
        let descriptors: Vec<_> = self.all.iter().map(AsFd::as_fd).collect();
        wait_readable(&descriptors, Some(time))?;
        self.accept()
    }

    /// Registers the listeners with `readiness`, which reports `token` when [`Listeners::accept`] should be
    /// called again.
    ///
    /// # Errors
    /// If the listeners are already registered.
    pub fn watch(&self, readiness: &Readiness, token: u64) -> io::Result<()> {
        self.all.iter().try_for_each(|listener| readiness.watch_listener(listener, token))
    }

    /// Accepts the next connection; `None` if no connection is waiting. Does not block.
    ///
    /// # Errors
    /// If the host has ended.
    pub fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let first = self.calls.fetch_add(1, Ordering::Relaxed) % self.all.len().max(1);
        let (before, from) = self.all.split_at(first);
        for listener in from.iter().chain(before) {
            match listener.accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                accepted => return accepted.map(Some),
            }
        }
        Ok(None)
    }
}
