//! Sockets for tasks: the traits of tokio, which know no runtime.
//!
//! Separate because nothing here waits: a call that would block leaves the task's waker at the cell. Of the tasks
//! that read from one connection only the last that asked is woken, likewise of those that write, and of those that
//! accept from one listener. Whether a socket is nonblocking means nothing here.

use std::future::poll_fn;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

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
