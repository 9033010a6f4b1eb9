//! Waits for the readiness of many sockets in one thread.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{TcpListener, TcpStream};
use crate::cell::{ReadySet, Signal};

/// Reports the ready sockets among many nonblocking sockets, without a descriptor per socket. The cost of a
/// wait depends on the number of ready sockets, not on the number of watched sockets. Clones share one set.
///
/// Each socket has a token. After a call on a socket has returned [`io::ErrorKind::WouldBlock`], the token of
/// the socket is reported when the call should be retried. Spurious tokens are possible.
///
/// # Examples
/// ```no_run
/// # fn run(listener: rxo_host::TcpListener) -> std::io::Result<()> {
/// let (readiness, mut ready) = (rxo_host::Readiness::new(), Vec::new());
/// listener.set_nonblocking(true)?;
/// readiness.watch_listener(&listener, 0)?;
/// loop {
///     while let Ok((stream, _)) = listener.accept() {
///         stream.set_nonblocking(true)?;
///         readiness.watch(&stream, 1)?;
///     }
///     ready.clear();
///     readiness.wait(&mut ready, None);
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Readiness {
    set: Arc<ReadySet>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self::new()
    }
}

impl Readiness {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self { set: Arc::new(ReadySet::new()) }
    }

    /// Watches `stream` under `token`. Must be called before the stream is used in nonblocking mode.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the stream is already watched, or if its descriptor is in use.
    pub fn watch(&self, stream: &TcpStream, token: u64) -> io::Result<()> {
        self.join(stream.signal(), token)
    }

    /// Watches `listener` under `token`.
    ///
    /// # Errors
    /// The errors of [`Readiness::watch`].
    pub fn watch_listener(&self, listener: &TcpListener, token: u64) -> io::Result<()> {
        self.join(listener.signal(), token)
    }

    fn join(&self, signal: &Signal, token: u64) -> io::Result<()> {
        if signal.join(&self.set, token) {
            return Ok(());
        }
        let message =
            "the socket is watched already, or its descriptor was taken; use only one of them";
        Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
    }

    /// Reports `token`, which need not belong to a socket, and wakes a waiting thread. Callable from any
    /// thread; never blocks.
    pub fn notify(&self, token: u64) {
        self.set.notify(token);
    }

    /// Appends the tokens that were reported since the last call to `ready`. If there are no such tokens,
    /// blocks until a token is reported or `timeout` passes; `None` sets no limit.
    pub fn wait(&self, ready: &mut Vec<u64>, timeout: Option<Duration>) {
        self.set.wait(ready, timeout);
    }
}
