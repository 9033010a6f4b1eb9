//! Many sockets and one thread.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{TcpListener, TcpStream};
use crate::cell::{ReadySet, Signal};

/// Says which of many nonblocking sockets to use again, without a descriptor for each; a wait costs what is
/// ready, not what is watched. Clones are the same set.
///
/// Each socket has a token. After a call on it has returned [`io::ErrorKind::WouldBlock`], its token comes when
/// that call should be tried again; the same token may come in vain.
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
    /// Without sockets.
    #[must_use]
    pub fn new() -> Self {
        Self { set: Arc::new(ReadySet::new()) }
    }

    /// Watches `stream`, before it is used without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if it is watched, or its descriptor was taken.
    pub fn watch(&self, stream: &TcpStream, token: u64) -> io::Result<()> {
        self.join(stream.signal(), token)
    }

    /// Watches `listener`.
    ///
    /// # Errors
    /// As [`Readiness::watch`].
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

    /// Lets `token` come, which need not be a socket's. From any thread; never blocks.
    pub fn tell(&self, token: u64) {
        self.set.tell(token);
    }

    /// Appends the tokens that came since the last call to `ready`. If there is none, waits until `timeout` has
    /// passed; `None` means for ever.
    pub fn wait(&self, ready: &mut Vec<u64>, timeout: Option<Duration>) {
        self.set.wait(ready, timeout);
    }
}
