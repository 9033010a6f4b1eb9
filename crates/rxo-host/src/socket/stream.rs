//! The application's handle of a connection.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use rxo_frame::SharedBytes;
use rxo_tcp::{KeepAlive, Statistics};

use super::Waiting;
use crate::cell::{Reader, Signal, Socket, local, peer};
use crate::transmit::Marks;

/// A TCP connection of this host, like [`std::net::TcpStream`], from any thread.
///
/// Dropping the last clone closes the connection in the background: written data is still delivered, unless
/// received text was not read; then the peer is reset.
///
/// When a connection fails, text that had arrived in order is still read, then a read returns the failure once, then 0, as on
/// Linux. Writes return it each time. Behind a peer's FIN no text is missing: then reads return 0 and only writes fail.
///
/// # Readiness
/// [`AsFd`] gives a descriptor for `mio`, `epoll` and the like. Register it for *reading*, also to wait for
/// writing: after a call returned [`io::ErrorKind::WouldBlock`] it becomes readable when that call should be
/// tried again. It is readable at first. Do not read, write or close it. With edge-triggered polling, use the
/// socket until it would block, as always.
#[derive(Clone)]
pub struct TcpStream {
    pub(super) socket: Arc<dyn Socket>,
    waiting: Arc<Waiting>,
}

impl TcpStream {
    pub(crate) fn new(socket: Arc<dyn Socket>) -> Self {
        Self { socket, waiting: Arc::default() }
    }

    pub(super) fn signal(&self) -> &Signal {
        self.socket.signal()
    }

    /// Waits until the connection is open.
    pub(crate) fn wait_connected(&self, timeout: Option<Duration>) -> io::Result<()> {
        let outcome = self.waiting.until(self.socket.signal(), timeout, || {
            match self.socket.is_connected()? {
                true => Ok(()),
                false => Err(io::ErrorKind::WouldBlock.into()),
            }
        });
        outcome.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                io::Error::new(io::ErrorKind::TimedOut, "the peer did not answer in time")
            }
            _ => error,
        })
    }

    /// Whether a connection that was opened without waiting is open now. If not, the descriptor becomes
    /// readable when this should be called again.
    ///
    /// # Errors
    /// Why the connection failed or has ended.
    pub fn is_connected(&self) -> io::Result<bool> {
        if self.socket.is_connected()? {
            return Ok(true);
        }
        self.socket.signal().arm();
        // The connection may have opened in between.
        self.socket.is_connected()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(peer(&self.socket.pair()))
    }

    /// The local address.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(local(&self.socket.pair()))
    }

    /// Shuts down reading, writing or both. Shutting down writing sends a FIN after the written data.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if there is no connection.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.socket.shutdown(how)
    }

    /// Resets the connection. Undelivered data is lost.
    pub fn abort(&self) {
        self.socket.abort();
    }

    /// Another handle of the same connection.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Reads without consuming.
    ///
    /// # Errors
    /// As [`Read::read`].
    pub fn peek(&self, to: &mut [u8]) -> io::Result<usize> {
        let timeout = self.waiting.read_timeout().get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.peek(to))
    }

    /// Writes without a copy: takes as much off the front of `from` as there is room for, and returns how many bytes.
    /// Waits for room as [`Write::write`] does, and both may be mixed: the peer gets everything in the order of the
    /// calls, with the end of one text and the beginning of the next in one segment. Less than 2 KiB is copied.
    ///
    /// The connection keeps the bytes until the peer has acknowledged them, or the connection has ended, also after
    /// the stream is dropped. They count against the same limit as written bytes; a part, however small, keeps the
    /// whole owner.
    /// The host's worker reads the bytes whenever it sends them, more than once if they are lost, and it may drop the
    /// owner. So the bytes should be in memory: while they are read from a disk, no connection of the host is served. A
    /// mapping of a file that is truncated meanwhile ends the whole process by SIGBUS: see [`SharedBytes::from_owner`].
    ///
    /// # Errors
    /// As [`Write::write`]; then `from` is unchanged.
    ///
    /// # Examples
    /// ```no_run
    /// # fn answer(stream: &rxo_host::TcpStream, page: rxo_host::SharedBytes) -> std::io::Result<()> {
    /// use std::io::Write;
    ///
    /// (&*stream).write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    /// let mut page = page.clone();
    /// while !page.is_empty() {
    ///     stream.write_shared(&mut page)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_shared(&self, from: &mut SharedBytes) -> io::Result<usize> {
        let timeout = self.waiting.write_timeout().get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.write_shared(from))
    }

    /// Gives all received text to `reader` from now on, in order, a piece at a time, as soon as it arrives. It is
    /// called on the host's thread, with the text where it arrived: nothing is copied, no thread is woken, and
    /// the window stays open. This is the cheapest way to receive. What has arrived before is given on this
    /// thread.
    ///
    /// [`Read::read`] then waits for the end: it returns 0 after the peer has closed and `reader` has had
    /// everything, and once the error of a connection that failed. Writing, closing and readiness are as before.
    ///
    /// `reader` runs while the connection is locked, and everything else of the host waits for it: it must not wait.
    /// It must not use a stream or a listener of any host, because two readers that use each other's streams would
    /// wait for each other: let it hand the text over by a channel. Calls that it makes all the same fail with
    /// [`io::ErrorKind::Deadlock`]; [`TcpStream::abort`], [`TcpStream::statistics`] and this one panic. It may
    /// drop streams. If it panics, the host ends. It is dropped when the connection is over.
    pub fn read_with(&self, reader: impl FnMut(&[u8]) + Send + 'static) {
        self.socket.set_reader(Reader::new(reader));
    }

    /// Reads in place, without a copy: shows `read` text that has arrived, in order and where the device has
    /// written it, and consumes as many bytes as `read` returns, at most those that it was shown. Returns that
    /// number. 0 if the peer has closed its direction and everything is read; `read` is not called then.
    ///
    /// `read` sees at least one piece and at most 64, none of them empty; more text may be readable. The
    /// connection is locked meanwhile: what arrives waits in a bounded queue and is dropped when that is full. So
    /// `read` should not wait for anything, and must not use a stream or a listener, as with
    /// [`TcpStream::read_with`].
    ///
    /// # Errors
    /// As [`Read::read`].
    ///
    /// # Examples
    /// ```no_run
    /// # fn hash(_: &[u8]) {}
    /// # fn run(stream: rxo_host::TcpStream) -> std::io::Result<()> {
    /// loop {
    ///     let read = stream.read_in_place(|pieces| {
    ///         pieces.iter().for_each(|piece| hash(piece));
    ///         pieces.iter().map(|piece| piece.len()).sum()
    ///     })?;
    ///     if read == 0 {
    ///         return Ok(());
    ///     }
    /// }
    /// # }
    /// ```
    pub fn read_in_place(&self, read: impl FnOnce(&[IoSlice<'_>]) -> usize) -> io::Result<usize> {
        let mut read = Some(read);
        let mut show = |pieces: &[IoSlice<'_>]| read.take().map_or(0, |read| read(pieces));
        let timeout = self.waiting.read_timeout().get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.read_in_place(&mut show))
    }

    /// Writes `head`, which is copied, and behind it `text` as [`TcpStream::write_shared`] does: in one call, so that
    /// the end of the head and the beginning of the text leave in one segment. Returns how many bytes of both were
    /// taken; those of `text` are off its front.
    ///
    /// # Errors
    /// As [`Write::write`]; then `text` is unchanged.
    pub fn write_both(&self, head: &[u8], text: &mut SharedBytes) -> io::Result<usize> {
        let timeout = self.waiting.write_timeout().get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.write_both(head, text))
    }

    /// Sets whether calls that would block return an error instead.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        self.waiting.set_nonblocking(is_nonblocking);
        Ok(())
    }

    /// Sets how long a read waits before it returns [`io::ErrorKind::WouldBlock`]; `None` means for ever.
    ///
    /// # Errors
    /// If the time is zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.waiting.read_timeout().set(timeout)
    }

    /// Sets how long a write waits before it returns [`io::ErrorKind::WouldBlock`]; `None` means for ever.
    ///
    /// # Errors
    /// If the time is zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.waiting.write_timeout().set(timeout)
    }

    /// How long a read waits; `None` means for ever.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.waiting.read_timeout().get())
    }

    /// How long a write waits; `None` means for ever.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.waiting.write_timeout().get())
    }

    /// Sets whether small segments are sent at once, which switches the Nagle algorithm off.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn set_nodelay(&self, is_nodelay: bool) -> io::Result<()> {
        self.socket.set_nagle(!is_nodelay)
    }

    /// Sets when and how often the peer is asked whether it is still there while nothing else is sent; `None` for
    /// never (RFC 9293, section 3.8.4). [`HostConfig::tcp`](crate::HostConfig::tcp) says how connections begin. The
    /// idle time begins when this takes effect, which is soon.
    ///
    /// # Errors
    /// `InvalidInput` if a time is shorter than a millisecond, or a single probe would decide.
    pub fn set_keep_alive(&self, settings: Option<KeepAlive>) -> io::Result<()> {
        self.socket.set_keep_alive(settings)
    }

    /// Sets how long written data may stay unacknowledged before the connection fails (RFC 5482, section 3).
    /// [`HostConfig::tcp`](crate::HostConfig::tcp) says how connections begin. For data that is outstanding the time
    /// begins when this takes effect, which is soon.
    ///
    /// # Errors
    /// Never, except in a reader.
    pub fn set_user_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.socket.set_user_timeout(timeout)
    }

    /// Sets the time to live, or hop limit, of later packets (RFC 9293, section 3.9.2); 64 until set.
    ///
    /// # Errors
    /// `InvalidInput` unless it is from 1 to 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hop_limit = u8::try_from(ttl).ok().filter(|limit| *limit > 0);
        let hop_limit = hop_limit.ok_or_else(|| wrong(format!("ttl is {ttl}; choose 1 to 255")))?;
        self.socket.set_marks(Marks { hop_limit, ..self.socket.marks()? })
    }

    /// The time to live, or hop limit.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.socket.marks()?.hop_limit.into())
    }

    /// Sets the differentiated services code point of later packets (RFC 2474; RFC 9293, section 3.9.1.9),
    /// without the ECN bits; 0 until set.
    ///
    /// # Errors
    /// `InvalidInput` if it has more than six bits.
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        if dscp > MOST_DSCP {
            return Err(wrong(format!("dscp is {dscp}; choose 0 to {MOST_DSCP}")));
        }
        self.socket.set_marks(Marks { dscp, ..self.socket.marks()? })
    }

    /// What it is.
    ///
    /// # Errors
    /// Never, except in a reader.
    pub fn dscp(&self) -> io::Result<u8> {
        Ok(self.socket.marks()?.dscp)
    }

    /// Why the connection failed; `None` if it did not, or after the first call.
    ///
    /// # Errors
    /// Never; as in `std::net`.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    /// How many bytes were written that the peer has not acknowledged: those on their way to it, and those that its window
    /// or the path hold back. 0 once the connection is over.
    ///
    /// # Panics
    /// In a reader, as [`TcpStream::statistics`].
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> usize {
        self.socket.unacknowledged_bytes()
    }

    /// A snapshot of the connection: windows, round-trip time, agreed features.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.socket.statistics()
    }
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Six bits.
const MOST_DSCP: u8 = 63;

impl Read for &TcpStream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        let timeout = self.waiting.read_timeout().get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.read(to))
    }
}

impl Write for &TcpStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let timeout = self.waiting.write_timeout().get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.write(from))
    }

    /// Does nothing: written data is sent without it.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        (&*self).read(to)
    }
}

impl Write for TcpStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        (&*self).write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for TcpStream {
    /// See [readiness](TcpStream#readiness).
    ///
    /// # Panics
    /// If the process has no descriptor left.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.waiting.descriptor(self.socket.signal()) {
            Ok(descriptor) => descriptor,
            Err(error) => panic!("no descriptor for the readiness of a stream: {error}"),
        }
    }
}

impl AsRawFd for TcpStream {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TcpStream({:?})", self.socket.pair())
    }
}
