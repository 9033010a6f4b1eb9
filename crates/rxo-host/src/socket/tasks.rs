//! Sockets for asynchronous tasks: implements tokio's traits without depending on a runtime.
//!
//! No call blocks a thread: a call that would block stores the task's waker in the cell. If several tasks read
//! from one connection, only the last task that called is woken. This also applies to tasks that write to one
//! connection, and to tasks that accept from one listener. The nonblocking mode of a socket has no effect here.
//!
//! The calls of tokio's traits copy data. Each call without a copy exists as a function to poll and as an async
//! function, both named after the blocking call.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use rxo_frame::SharedBytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Handle, TcpListener, TcpStream};
use crate::cell::{Signal, TaskEvent};

impl Handle {
    /// Opens a connection and waits until it is established, as [`Handle::connect`] does.
    ///
    /// # Errors
    /// The errors of [`Handle::connect`].
    pub async fn connect_async(&self, remote: SocketAddr) -> io::Result<TcpStream> {
        let stream = self.connect_nonblocking(remote)?;
        poll_fn(|context| stream.poll_connected(context)).await?;
        Ok(stream)
    }
}

impl TcpStream {
    /// Returns `Ready` once a connection that was opened without blocking is established.
    ///
    /// # Errors
    /// The reason why the connection failed or was closed.
    pub fn poll_connected(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll(self.socket.signal(), TaskEvent::Write, context, || {
            match self.socket.is_connected()? {
                true => Ok(()),
                false => Err(io::ErrorKind::WouldBlock.into()),
            }
        })
    }

    /// Writes without a copy, as [`TcpStream::write_shared`] does. While the send buffer is full, leaves
    /// `from` unchanged and wakes the task when there is free space.
    ///
    /// # Errors
    /// The errors of [`TcpStream::write_shared`].
    pub fn poll_write_shared(
        &self,
        context: &mut Context<'_>,
        from: &mut SharedBytes,
    ) -> Poll<io::Result<usize>> {
        let write = || self.socket.write_shared(from);
        poll(self.socket.signal(), TaskEvent::Write, context, write)
    }

    /// Waits for free space in the send buffer and writes without a copy, as [`TcpStream::write_shared`]
    /// does. Cancellation is safe: bytes are removed from `from` only if they are written.
    ///
    /// # Errors
    /// The errors of [`TcpStream::write_shared`].
    ///
    /// # Examples
    /// A head that is copied, and a page that is not:
    /// ```
    /// use rxo_host::{SharedBytes, TcpStream};
    /// use tokio::io::AsyncWriteExt;
    ///
    /// async fn answer(stream: &mut TcpStream, mut page: SharedBytes) -> std::io::Result<()> {
    ///     stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    ///     while !page.is_empty() {
    ///         stream.write_shared_async(&mut page).await?;
    ///     }
    ///     stream.shutdown().await
    /// }
    /// ```
    pub async fn write_shared_async(&self, from: &mut SharedBytes) -> io::Result<usize> {
        poll_fn(|context| self.poll_write_shared(context, from)).await
    }

    /// Writes a copy of `head`, then `text` without a copy, as [`TcpStream::write_both`] does. While the send
    /// buffer is full, leaves `text` unchanged and wakes the task when there is free space.
    ///
    /// # Errors
    /// The errors of [`TcpStream::write_both`].
    pub fn poll_write_both(
        &self,
        context: &mut Context<'_>,
        head: &[u8],
        text: &mut SharedBytes,
    ) -> Poll<io::Result<usize>> {
        let write = || self.socket.write_both(head, text);
        poll(self.socket.signal(), TaskEvent::Write, context, write)
    }

    /// Waits for free space in the send buffer and writes `head` and `text` as [`TcpStream::write_both`]
    /// does. Cancellation is safe, as for [`TcpStream::write_shared_async`].
    ///
    /// # Errors
    /// The errors of [`TcpStream::write_both`].
    pub async fn write_both_async(&self, head: &[u8], text: &mut SharedBytes) -> io::Result<usize> {
        poll_fn(|context| self.poll_write_both(context, head, text)).await
    }

    /// Reads in place, as [`TcpStream::read_in_place`] does. While there is no data, does not call `read`,
    /// and wakes the task when data arrives.
    ///
    /// # Errors
    /// The errors of [`TcpStream::read_in_place`].
    pub fn poll_read_in_place(
        &self,
        context: &mut Context<'_>,
        read: impl FnOnce(&[IoSlice<'_>]) -> usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_show(context, &mut Some(read))
    }

    /// Waits for data and reads it in place, as [`TcpStream::read_in_place`] does. `read` is called at most
    /// once, by the thread that polls, and must not block. Cancellation is safe: a cancelled future has not
    /// called `read`.
    ///
    /// # Errors
    /// The errors of [`TcpStream::read_in_place`].
    ///
    /// # Examples
    /// ```
    /// use rxo_host::TcpStream;
    ///
    /// /// How many lines the peer sends; no byte of them is copied.
    /// async fn lines(stream: TcpStream) -> std::io::Result<usize> {
    ///     let mut lines = 0;
    ///     let newlines = |piece: &[u8]| piece.iter().filter(|byte| **byte == b'\n').count();
    ///     while 0 < stream
    ///         .read_in_place_async(|pieces| {
    ///             lines += pieces.iter().map(|piece| newlines(piece)).sum::<usize>();
    ///             pieces.iter().map(|piece| piece.len()).sum()
    ///         })
    ///         .await?
    ///     {}
    ///     Ok(lines)
    /// }
    /// ```
    pub async fn read_in_place_async(
        &self,
        read: impl FnOnce(&[IoSlice<'_>]) -> usize,
    ) -> io::Result<usize> {
        let mut read = Some(read);
        poll_fn(|context| self.poll_show(context, &mut read)).await
    }

    /// When there is data, takes the function out of the option `read` and calls it. Otherwise leaves `read`
    /// unchanged.
    fn poll_show(
        &self,
        context: &mut Context<'_>,
        read: &mut Option<impl FnOnce(&[IoSlice<'_>]) -> usize>,
    ) -> Poll<io::Result<usize>> {
        let mut show = |pieces: &[IoSlice<'_>]| read.take().map_or(0, |read| read(pieces));
        let attempt = || self.socket.read_in_place(&mut show);
        poll(self.socket.signal(), TaskEvent::Read, context, attempt)
    }
}

impl TcpListener {
    /// Accepts a connection, as [`TcpListener::accept`] does. If no connection waits, the task is woken when
    /// one can be accepted.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the host was stopped.
    pub fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let signal = self.listener.signal();
        poll(signal, TaskEvent::Read, context, || self.listener.accept()).map_ok(|socket| {
            let peer = socket.pair().receiver();
            (TcpStream::new(socket), peer)
        })
    }

    /// Waits for a connection and accepts it, as [`TcpListener::accept`] does.
    ///
    /// # Errors
    /// The errors of [`TcpListener::poll_accept`].
    pub async fn accept_async(&self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|context| self.poll_accept(context)).await
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let read = || self.socket.read(buffer.initialize_unfilled());
        poll(self.socket.signal(), TaskEvent::Read, context, read)
            .map_ok(|bytes| buffer.advance(bytes))
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        poll(self.socket.signal(), TaskEvent::Write, context, || self.socket.write(data))
    }

    /// Does nothing: written data is sent without a flush.
    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Sends a FIN after the written data, without waiting for its ACK.
    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.shutdown(Shutdown::Write))
    }
}

/// Calls `attempt`. If `attempt` would block, registers the task to be woken by the next change, and calls
/// `attempt` once more, because a change may have happened between the first attempt and the registration.
fn poll<R>(
    signal: &Signal,
    event: TaskEvent,
    context: &Context<'_>,
    mut attempt: impl FnMut() -> io::Result<R>,
) -> Poll<io::Result<R>> {
    match attempt() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        done => return Poll::Ready(done),
    }
    signal.tasks().register(event, context.waker());
    match attempt() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}
