//! The application's handle to a connection.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use rxo_frame::SharedBytes;
use rxo_tcp::{KeepAlive, Statistics};

use super::Waiting;
use crate::cell::{Reader, Signal, Socket};
use crate::transmit::Marks;

/// A TCP connection of this host, like [`std::net::TcpStream`]; usable from any thread.
///
/// Dropping the last clone closes the connection in the background: written data is still delivered. But if
/// received data was not read, the connection is reset.
///
/// After a failure, data that was received in order can still be read; then a read returns the error once,
/// and later reads return 0, as on Linux. Writes return the error each time. If the peer had sent its FIN, no
/// data is missing: reads return 0, and only writes fail.
///
/// # Readiness
/// [`AsFd`] returns a descriptor for `mio`, `epoll` and the like. Register the descriptor for *reading*, even
/// to wait for writing: after a call has returned [`io::ErrorKind::WouldBlock`], the descriptor becomes
/// readable when that call should be retried. The descriptor is readable at first. Do not read, write or close
/// the descriptor. With edge-triggered polling, use the socket until it would block, as usual.
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

    /// Blocks until the connection is established, at most for `timeout`; `None` sets no limit.
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

    /// Returns `true` if a connection that was opened without blocking is established. If this function returns
    /// `false`, the descriptor becomes readable when the call should be repeated.
    ///
    /// # Errors
    /// The error for which the connection failed or was closed.
    pub fn is_connected(&self) -> io::Result<bool> {
        if self.socket.is_connected()? {
            return Ok(true);
        }
        self.socket.signal().arm();
        // The connection may have been established since the first check.
        self.socket.is_connected()
    }

    /// Returns the peer's address and port.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.pair().receiver())
    }

    /// Returns the local address and port.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.pair().sender())
    }

    /// Shuts down reading, writing or both. Shutting down writing sends a FIN after the written data.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if there is no connection.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.socket.shutdown(how)
    }

    /// Resets the connection. Data that was not delivered is lost.
    pub fn abort(&self) {
        self.socket.abort();
    }

    /// Creates another handle to the same connection.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Copies received data into `to` without consuming it.
    ///
    /// # Errors
    /// The errors of [`Read::read`].
    pub fn peek(&self, to: &mut [u8]) -> io::Result<usize> {
        let timeout = self.waiting.read_timeout.get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.peek(to))
    }

    /// Writes without a copy: removes from the front of `from` as many bytes as fit into the send buffer, and
    /// returns their number. Blocks while the buffer is full, as [`Write::write`] does. Both calls may be
    /// mixed: the peer receives all data in the order of the calls, and a segment may contain data of two
    /// calls. If less than 2 KiB are written, they are copied.
    ///
    /// The connection keeps the bytes until the peer has acknowledged them or the connection is closed, even if
    /// the stream is dropped. The bytes count towards the limit of the send buffer, like copied bytes. The
    /// owner of the bytes is not dropped while any part of them, however small, is unacknowledged. The worker
    /// reads the bytes whenever it sends or retransmits them, and may drop the owner. The bytes should be in
    /// memory, because the worker serves no other connection while it waits for a disk. If the bytes are a
    /// mapping of a file that is truncated, SIGBUS ends the whole process: see [`SharedBytes::from_owner`].
    ///
    /// # Errors
    /// The errors of [`Write::write`]; if there is an error, `from` is unchanged.
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
        let timeout = self.waiting.write_timeout.get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.write_shared(from))
    }

    /// Passes all data that is received from now on to `reader`, in order, one piece at a time, as soon as the
    /// data arrives. `reader` is called on the worker's thread and reads the receive buffers: no data is
    /// copied, no thread is woken, and the window stays open. This is the cheapest way to receive. This call
    /// itself passes the data that was already received, on the calling thread.
    ///
    /// Afterwards, [`Read::read`] only waits for the end of the data: it returns 0 after the peer has closed
    /// its direction and `reader` has received all data. For a failed connection, it returns the error once.
    /// Writing, closing and readiness do not change.
    ///
    /// `reader` runs while the connection is locked, and delays the whole host, so it must not block. It must
    /// not use a stream or a listener of any host, because two readers that use each other's streams would
    /// deadlock. Use a channel to pass the data to another thread. Calls on sockets inside `reader` fail with
    /// [`io::ErrorKind::Deadlock`]; [`TcpStream::abort`], [`TcpStream::statistics`] and this function panic.
    /// `reader` may drop streams. If `reader` panics, the host ends. `reader` is dropped when the connection is
    /// closed.
    pub fn read_with(&self, reader: impl FnMut(&[u8]) + Send + 'static) {
        self.socket.set_reader(Reader::new(reader));
    }

    /// Reads in place, without a copy: passes received data to `read`, in order and in the buffers in which
    /// the device wrote it. Consumes the number of bytes that `read` returns, at most the number of bytes
    /// passed to it, and returns the number consumed. Returns 0, without calling `read`, if the peer has
    /// closed its direction and all data was read.
    ///
    /// `read` receives 1 to 64 slices, none of them empty; more data may be available. The connection is
    /// locked meanwhile: new segments wait in a bounded queue, and are dropped when it is full. So `read`
    /// should not block, and must not use a stream or a listener, as with [`TcpStream::read_with`].
    ///
    /// # Errors
    /// The errors of [`Read::read`].
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
        let timeout = self.waiting.read_timeout.get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.read_in_place(&mut show))
    }

    /// Writes a copy of `head`, followed by `text` without a copy as [`TcpStream::write_shared`] does. The
    /// bytes are written in one call, so that a segment may contain the end of `head` and the beginning of
    /// `text`. Returns the total number of bytes written. Written bytes of `text` are removed from its front.
    ///
    /// # Errors
    /// The errors of [`Write::write`]; if there is an error, `text` is unchanged.
    pub fn write_both(&self, head: &[u8], text: &mut SharedBytes) -> io::Result<usize> {
        let timeout = self.waiting.write_timeout.get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.write_both(head, text))
    }

    /// Makes calls return [`io::ErrorKind::WouldBlock`] instead of blocking if `is_nonblocking` is set.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        self.waiting.set_nonblocking(is_nonblocking);
        Ok(())
    }

    /// Sets the time after which a blocked read returns [`io::ErrorKind::WouldBlock`]; `None` sets no limit.
    ///
    /// # Errors
    /// If the time is zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.waiting.read_timeout.set(timeout)
    }

    /// Sets the time after which a blocked write returns [`io::ErrorKind::WouldBlock`]; `None` sets no limit.
    ///
    /// # Errors
    /// If the time is zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.waiting.write_timeout.set(timeout)
    }

    /// Returns the time after which a blocked read fails; `None` means no limit.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.waiting.read_timeout.get())
    }

    /// Returns the time after which a blocked write fails; `None` means no limit.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.waiting.write_timeout.get())
    }

    /// Sends small segments at once if `is_nodelay` is set; otherwise the Nagle algorithm may delay them.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn set_nodelay(&self, is_nodelay: bool) -> io::Result<()> {
        self.socket.set_nagle(!is_nodelay)
    }

    /// Sets the maximum number of written bytes that have not been sent, like `TCP_NOTSENT_LOWAT` of Linux. A
    /// write waits while this number of bytes is unsent, and continues when half of them have been sent. Sent
    /// bytes that are not acknowledged are not counted. `None` sets no limit besides the send buffer's size.
    /// The default is the setting in [`HostConfig::tcp`](crate::HostConfig::tcp). With a small limit, an urgent
    /// message does not wait behind much earlier data, but more calls and wake-ups are needed.
    ///
    /// # Errors
    /// `InvalidInput` if `bytes` is 0 or more than 2³⁰ - 1.
    pub fn set_most_unsent(&self, bytes: Option<u32>) -> io::Result<()> {
        self.socket.set_most_unsent(bytes)
    }

    /// Sets the idle time after which the peer is probed, and the interval and number of probes (RFC 9293,
    /// section 3.8.4). `None` turns keep-alive off. The default is the setting in
    /// [`HostConfig::tcp`](crate::HostConfig::tcp). The idle time starts when the worker applies the change, in
    /// its next round.
    ///
    /// # Errors
    /// `InvalidInput` if a time is shorter than a millisecond, or if one unanswered probe would close the
    /// connection.
    pub fn set_keep_alive(&self, settings: Option<KeepAlive>) -> io::Result<()> {
        self.socket.set_keep_alive(settings)
    }

    /// Sets the maximum time for which written data may stay unacknowledged before the connection fails (RFC
    /// 5482, section 3). The default is the setting in [`HostConfig::tcp`](crate::HostConfig::tcp). For data
    /// that is already outstanding, the time starts when the worker applies the change, in its next round.
    ///
    /// # Errors
    /// `Deadlock` inside a reader; otherwise never.
    pub fn set_user_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.socket.set_user_timeout(timeout)
    }

    /// Sets the IPv4 TTL or IPv6 hop limit of later packets (RFC 9293, section 3.9.2); the default is 64.
    ///
    /// # Errors
    /// `InvalidInput` unless `ttl` is 1 to 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hop_limit = u8::try_from(ttl).ok().filter(|limit| *limit > 0);
        let hop_limit = hop_limit.ok_or_else(|| wrong(format!("ttl is {ttl}; choose 1 to 255")))?;
        self.socket.set_marks(Marks { hop_limit, ..self.socket.marks()? })
    }

    /// Returns the IPv4 TTL or IPv6 hop limit of sent packets.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.socket.marks()?.hop_limit.into())
    }

    /// Sets the differentiated services code point of later packets, without the ECN bits (RFC 2474; RFC
    /// 9293, section 3.9.1.9); the default is 0.
    ///
    /// # Errors
    /// `InvalidInput` if `dscp` exceeds 63.
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        if dscp > MOST_DSCP {
            return Err(wrong(format!("dscp is {dscp}; choose 0 to {MOST_DSCP}")));
        }
        self.socket.set_marks(Marks { dscp, ..self.socket.marks()? })
    }

    /// Returns the differentiated services code point of sent packets.
    ///
    /// # Errors
    /// `Deadlock` inside a reader; otherwise never.
    pub fn dscp(&self) -> io::Result<u8> {
        Ok(self.socket.marks()?.dscp)
    }

    /// Returns the error for which the connection failed, once. Later calls return `None`, as do calls on a
    /// connection that did not fail.
    ///
    /// # Errors
    /// None; the signature is that of `std::net`.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    /// Returns the number of written bytes that the peer has not acknowledged, sent or not. 0 once the
    /// connection is closed.
    ///
    /// # Panics
    /// Inside a reader, like [`TcpStream::statistics`].
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> usize {
        self.socket.unacknowledged_bytes()
    }

    /// Returns a snapshot of the connection: windows, round-trip time, negotiated features.
    ///
    /// # Panics
    /// Inside a reader; see [`TcpStream::read_with`].
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.socket.statistics()
    }
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The largest DSCP: the field has six bits.
const MOST_DSCP: u8 = 63;

impl Read for &TcpStream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        let timeout = self.waiting.read_timeout.get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.read(to))
    }
}

impl Write for &TcpStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let timeout = self.waiting.write_timeout.get();
        self.waiting.until(self.socket.signal(), timeout, || self.socket.write(from))
    }

    /// Does nothing: written data is sent without a flush.
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
    /// Returns the descriptor to poll; see [readiness](TcpStream#readiness).
    ///
    /// # Panics
    /// If the process cannot open another descriptor.
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
