//! Sockets for tasks: the traits of tokio, which know no runtime.
//!
//! Separate because nothing here waits: a call that would block leaves the task's waker at the cell. Of the tasks
//! that read from one connection only the last that asked is woken, likewise of those that write, and of those that
//! accept from one listener. Whether a socket is nonblocking means nothing here.
//!
//! Tokio's traits copy. What does not copy stands beside them, once to poll and once to await, under the name of the call
//! that blocks a thread.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use rxo_frame::SharedBytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Handle, TcpListener, TcpStream};
use crate::cell::{Signal, Wish, peer};

impl Handle {
    /// Opens a connection, as [`Handle::connect`] does.
    ///
    /// # Errors
    /// As [`Handle::connect`].
    pub async fn connect_async(&self, remote: SocketAddr) -> io::Result<TcpStream> {
        let stream = self.connect_nonblocking(remote)?;
        poll_fn(|context| stream.poll_connected(context)).await?;
        Ok(stream)
    }
}

impl TcpStream {
    /// Whether a connection that was opened without waiting is open.
    ///
    /// # Errors
    /// Why the connection failed or has ended.
    pub fn poll_connected(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll(self.socket.signal(), Wish::Write, context, || match self.socket.is_connected()? {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        })
    }

    /// Writes without a copy, as [`TcpStream::write_shared`] does. While there is no room, `from` is unchanged and the task
    /// is woken when there is.
    ///
    /// # Errors
    /// As [`TcpStream::write_shared`].
    pub fn poll_write_shared(
        &self,
        context: &mut Context<'_>,
        from: &mut SharedBytes,
    ) -> Poll<io::Result<usize>> {
        let write = || self.socket.write_shared(from);
        poll(self.socket.signal(), Wish::Write, context, write)
    }

    /// Waits for room, and writes without a copy as much as there is room for, as [`TcpStream::write_shared`] does. May be
    /// cancelled: either nothing was taken off `from`, or what was taken is written.
    ///
    /// # Errors
    /// As [`TcpStream::write_shared`].
    ///
    /// # Examples
    /// A head that is copied, and a page that is lent:
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

    /// Writes a copy of `head`, and `text` behind it without a copy, as [`TcpStream::write_both`] does. While there is no
    /// room, `text` is unchanged and the task is woken when there is.
    ///
    /// # Errors
    /// As [`TcpStream::write_both`].
    pub fn poll_write_both(
        &self,
        context: &mut Context<'_>,
        head: &[u8],
        text: &mut SharedBytes,
    ) -> Poll<io::Result<usize>> {
        let write = || self.socket.write_both(head, text);
        poll(self.socket.signal(), Wish::Write, context, write)
    }

    /// Waits for room, and writes both as [`TcpStream::write_both`] does. May be cancelled, as
    /// [`TcpStream::write_shared_async`].
    ///
    /// # Errors
    /// As [`TcpStream::write_both`].
    pub async fn write_both_async(&self, head: &[u8], text: &mut SharedBytes) -> io::Result<usize> {
        poll_fn(|context| self.poll_write_both(context, head, text)).await
    }

    /// Reads in place, as [`TcpStream::read_in_place`] does. While there is no text, `read` is not called and the task is
    /// woken when there is.
    ///
    /// # Errors
    /// As [`TcpStream::read_in_place`].
    pub fn poll_read_in_place(
        &self,
        context: &mut Context<'_>,
        read: impl FnOnce(&[IoSlice<'_>]) -> usize,
    ) -> Poll<io::Result<usize>> {
        self.poll_show(context, &mut Some(read))
    }

    /// Waits for text, and reads it in place as [`TcpStream::read_in_place`] does. `read` is called once at most, by the
    /// thread that polls, and must not wait. May be cancelled: then `read` was not called.
    ///
    /// # Errors
    /// As [`TcpStream::read_in_place`].
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

    /// Takes `read` when there is text to show it.
    fn poll_show(
        &self,
        context: &mut Context<'_>,
        read: &mut Option<impl FnOnce(&[IoSlice<'_>]) -> usize>,
    ) -> Poll<io::Result<usize>> {
        let mut show = |pieces: &[IoSlice<'_>]| read.take().map_or(0, |read| read(pieces));
        let attempt = || self.socket.read_in_place(&mut show);
        poll(self.socket.signal(), Wish::Read, context, attempt)
    }
}

impl TcpListener {
    /// Accepts a connection, as [`TcpListener::accept`] does.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the host was stopped.
    pub fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let signal = self.listener.signal();
        poll(signal, Wish::Read, context, || self.listener.accept()).map_ok(|socket| {
            let peer = peer(&socket.pair());
            (TcpStream::new(socket), peer)
        })
    }

    /// Waits for a connection, as [`TcpListener::accept`] does.
    ///
    /// # Errors
    /// As [`TcpListener::poll_accept`].
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
        poll(self.socket.signal(), Wish::Read, context, read).map_ok(|bytes| buffer.advance(bytes))
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
        poll(self.socket.signal(), Wish::Write, context, || self.socket.write(data))
    }

    /// Does nothing: written data is sent without it.
    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Sends a FIN after the written data, and does not wait for it.
    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.shutdown(Shutdown::Write))
    }
}

/// Calls `attempt`. If it would block, the next change wakes the task; a change in between is not missed.
fn poll<R>(
    signal: &Signal,
    wish: Wish,
    context: &Context<'_>,
    mut attempt: impl FnMut() -> io::Result<R>,
) -> Poll<io::Result<R>> {
    match attempt() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        done => return Poll::Ready(done),
    }
    signal.tasks().register(wish, context.waker());
    match attempt() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}
