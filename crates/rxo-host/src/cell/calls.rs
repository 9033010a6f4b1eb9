//! The application's calls on a cell, independent of the device's buffer type.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rxo_frame::{Duration, SharedBytes};
use rxo_tcp::{CallError, Closed, Connection, Failure, KeepAlive, State, Statistics};
use rxo_wire::FlowKey;

use super::reader::reading;
use super::{Cell, Inner, Reader, Signal};
use crate::buffer::Buffer;
use crate::transmit::Marks;

/// A connection as an application uses it. No call blocks: a call that would have to wait returns
/// [`io::ErrorKind::WouldBlock`].
pub(crate) trait Socket: Send + Sync {
    /// Returns `true` if the connection is established, and `false` while the connection opens. Returns an
    /// error if the connection is closed.
    fn is_connected(&self) -> io::Result<bool>;
    fn read(&self, to: &mut [u8]) -> io::Result<usize>;
    fn peek(&self, to: &mut [u8]) -> io::Result<usize>;
    fn set_reader(&self, reader: Reader);
    /// Passes received data to `read` in order and without a copy, as at most [`MOST_PIECES`] slices.
    /// Consumes as many bytes as `read` returns. Does not call `read` if there is no data.
    fn read_in_place(&self, read: &mut dyn FnMut(&[IoSlice<'_>]) -> usize) -> io::Result<usize>;
    fn write(&self, from: &[u8]) -> io::Result<usize>;
    /// Queues shared bytes without a copy, as [`Connection::send_shared`](rxo_tcp::Connection::send_shared)
    /// does.
    fn write_shared(&self, from: &mut SharedBytes) -> io::Result<usize>;
    /// Queues `head`, then all or a part of `text`, so that one segment can contain bytes of `head` and of
    /// `text`. `text` is queued only if all of `head` fits.
    fn write_both(&self, head: &[u8], text: &mut SharedBytes) -> io::Result<usize>;
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;
    fn abort(&self);
    fn set_nagle(&self, is_on: bool) -> io::Result<()>;
    /// Sets the maximum number of unsent bytes in the send buffer; `None` sets no limit besides the size of the
    /// buffer.
    fn set_most_unsent(&self, bytes: Option<u32>) -> io::Result<()>;
    /// Sets keep-alive probing; `None` turns it off. The setting takes effect when the worker next serves the
    /// connection.
    fn set_keep_alive(&self, settings: Option<KeepAlive>) -> io::Result<()>;
    /// Sets the user timeout. The setting takes effect when the worker next serves the connection.
    fn set_user_timeout(&self, timeout: Duration) -> io::Result<()>;
    fn marks(&self) -> io::Result<Marks>;
    fn set_marks(&self, marks: Marks) -> io::Result<()>;
    fn take_error(&self) -> io::Result<Option<io::Error>>;
    fn unacknowledged_bytes(&self) -> usize;
    fn statistics(&self) -> Statistics;
    fn signal(&self) -> &Signal;
    fn pair(&self) -> FlowKey;
}

/// The application's handle to a cell. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Bound<B: AsRef<[u8]>>(Arc<Cell<B>>);

impl<B: AsRef<[u8]> + Send + Sync + 'static> Bound<B> {
    /// Creates the application's handle to `cell`.
    pub(crate) fn bind(cell: Arc<Cell<B>>) -> Arc<dyn Socket> {
        Arc::new(Self(cell))
    }
}

impl<B: AsRef<[u8]>> Bound<B> {
    /// Calls `write` with the connection and the maximum number of bytes that `write` may pass to the
    /// connection. Returns the error `WouldBlock` if no memory can be reserved.
    fn write_with(
        &self,
        write: impl FnOnce(&mut Connection<Buffer<B>>, usize) -> Result<usize, CallError>,
    ) -> io::Result<usize> {
        self.0.call(|inner| {
            let most = self.0.most_to_send(inner);
            if most == 0 {
                // An error of a connection that cannot send any more takes precedence over the lack of
                // memory.
                inner.connection.send(&[]).map_err(|error| write_error(inner, error))?;
                (inner.lacks_memory, inner.has_work) = (true, true);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let written =
                write(&mut inner.connection, most).map_err(|error| write_error(inner, error))?;
            inner.has_work |= inner.connection.wants_attention();
            Ok(written)
        })
    }
}

impl<B: AsRef<[u8]>> Drop for Bound<B> {
    /// Makes the worker close the connection.
    fn drop(&mut self) {
        self.0.is_orphan.store(true, Ordering::SeqCst);
        self.0.mark();
    }
}

impl<B: AsRef<[u8]> + Send + Sync> Socket for Bound<B> {
    fn is_connected(&self) -> io::Result<bool> {
        self.0.call(|inner| match inner.connection.state() {
            State::Closed(closed) => Err(closed_error(closed)),
            State::Listen | State::SynSent(_) | State::SynReceived(_) => Ok(false),
            _ => Ok(true),
        })
    }

    fn read(&self, to: &mut [u8]) -> io::Result<usize> {
        self.0.call(|inner| {
            if inner.reads_no_more {
                return Ok(0);
            }
            if inner.reader.is_some() && inner.connection.readable_bytes() > 0 {
                // The worker will pass the data to the reader.
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let read = inner.connection.receive(to).map_err(|error| read_error(inner, error))?;
            inner.has_work |= inner.connection.has_to_send();
            Ok(read)
        })
    }

    fn peek(&self, to: &mut [u8]) -> io::Result<usize> {
        self.0.call(|inner| {
            if inner.connection.readable_bytes() == 0 {
                // There is no data to peek at: returns the error or the end of stream that a read would
                // return.
                return inner.connection.receive(to).map_err(|error| read_error(inner, error));
            }
            let mut copied = 0;
            for piece in inner.connection.readable() {
                let part = piece.len().min(to.len() - copied);
                to[copied..copied + part].copy_from_slice(&piece[..part]);
                copied += part;
            }
            Ok(copied)
        })
    }

    fn read_in_place(&self, read: &mut dyn FnMut(&[IoSlice<'_>]) -> usize) -> io::Result<usize> {
        self.0.call(|inner| {
            if inner.reads_no_more {
                return Ok(0);
            }
            if inner.connection.readable_bytes() == 0 {
                // There is no data to consume: returns the error or the end of stream that a read would
                // return.
                return inner.connection.receive(&mut []).map_err(|error| read_error(inner, error));
            }
            let mut pieces = [IoSlice::new(&[]); MOST_PIECES];
            let (mut count, mut bytes) = (0, 0);
            for (place, piece) in pieces.iter_mut().zip(inner.connection.readable()) {
                *place = IoSlice::new(piece);
                (count, bytes) = (count + 1, bytes + piece.len());
            }
            let wanted = reading(|| read(&pieces[..count])).min(bytes);
            let consumed = inner.connection.consume(wanted);
            inner.has_work |= inner.connection.has_to_send();
            Ok(consumed)
        })
    }

    /// Stores the reader. Passes the available data to the reader at once, because without further segments the
    /// worker may never serve the connection again.
    fn set_reader(&self, reader: Reader) {
        // Dropped after the lock is released: a reader may own streams, whose drop takes locks.
        let _spent = self.0.with(|inner| {
            let replaced = inner.reader.replace(reader);
            Cell::read_out(inner);
            inner.has_work |= inner.connection.has_to_send();
            let is_closed = matches!(inner.connection.state(), State::Closed(_));
            (replaced, inner.reader.take_if(|_| is_closed))
        });
    }

    fn write(&self, from: &[u8]) -> io::Result<usize> {
        self.write_with(|connection, most| connection.send(&from[..from.len().min(most)]))
    }

    fn write_shared(&self, from: &mut SharedBytes) -> io::Result<usize> {
        self.write_with(|connection, most| append_shared(connection, from, most))
    }

    fn write_both(&self, head: &[u8], text: &mut SharedBytes) -> io::Result<usize> {
        self.write_with(|connection, most| {
            if head.is_empty() {
                return append_shared(connection, text, most);
            }
            let written = connection.send(&head[..head.len().min(most)])?;
            // Once the head is queued, an error of the data after it is not reported.
            let is_all = written == head.len();
            let lent = if is_all { append_shared(connection, text, most - written) } else { Ok(0) };
            Ok(written + lent.unwrap_or(0))
        })
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.call(|inner| {
            if how != Shutdown::Write {
                inner.reads_no_more = true;
            }
            if how != Shutdown::Read {
                match inner.connection.shutdown() {
                    Ok(()) | Err(CallError::Closing) => {}
                    Err(_) => return Err(io::Error::from(io::ErrorKind::NotConnected)),
                }
                inner.has_work = true;
            }
            Ok(())
        })?;
        self.0.signal.notify();
        Ok(())
    }

    fn abort(&self) {
        self.0.with(|inner| {
            inner.connection.abort();
            inner.has_work = true;
        });
        self.0.signal.notify();
    }

    fn set_nagle(&self, is_on: bool) -> io::Result<()> {
        self.0.call(|inner| {
            inner.connection.set_nagle(is_on);
            inner.has_work |= inner.connection.has_to_send();
            Ok(())
        })
    }

    fn set_most_unsent(&self, bytes: Option<u32>) -> io::Result<()> {
        self.0.call(|inner| {
            let outcome = inner.connection.set_most_unsent(bytes);
            outcome.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
        })?;
        // A thread that waits for space may have some now.
        self.0.signal.notify();
        Ok(())
    }

    fn set_keep_alive(&self, settings: Option<KeepAlive>) -> io::Result<()> {
        let changed = rxo_tcp::Config { keep_alive: settings, ..rxo_tcp::Config::default() };
        changed.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.0.call(|inner| {
            inner.pending_changes().keep_alive = Some(settings);
            Ok(())
        })
    }

    fn set_user_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.0.call(|inner| {
            inner.pending_changes().user_timeout = Some(timeout);
            Ok(())
        })
    }

    fn marks(&self) -> io::Result<Marks> {
        self.0.call(|inner| Ok(inner.marks))
    }

    /// Sets the IP header fields of this connection's packets; the worker uses them starting with the next
    /// packet.
    fn set_marks(&self, marks: Marks) -> io::Result<()> {
        self.0.call(|inner| {
            inner.marks = marks;
            Ok(())
        })
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.0.call(|inner| match inner.connection.state() {
            State::Closed(Closed { failure: Some(failure) }) if !inner.is_error_taken => {
                inner.is_error_taken = true;
                Ok(Some(failure_error(failure)))
            }
            _ => Ok(None),
        })
    }

    fn unacknowledged_bytes(&self) -> usize {
        self.0.with(|inner| inner.connection.unacknowledged_bytes())
    }

    fn statistics(&self) -> Statistics {
        self.0.with(|inner| inner.connection.statistics())
    }

    fn signal(&self) -> &Signal {
        &self.0.signal
    }

    fn pair(&self) -> FlowKey {
        self.0.pair
    }
}

/// Passes at most `most` bytes of `text` to the send buffer without a copy, and removes them from `text`. The
/// passed bytes stay in memory until the peer acknowledges them, so they are counted like copied bytes.
fn append_shared<B: AsRef<[u8]>>(
    connection: &mut Connection<Buffer<B>>,
    text: &mut SharedBytes,
    most: usize,
) -> Result<usize, CallError> {
    if text.len() <= most {
        return connection.send_shared(text);
    }
    let lent = connection.send_shared(&mut text.first(most))?;
    text.advance(lent);
    Ok(lent)
}

/// Maximum number of slices passed to a reader: more than the frames of an aggregate. The slices take 1 KiB of
/// the stack.
const MOST_PIECES: usize = 64;

fn read_error<B: AsRef<[u8]>>(inner: &Inner<B>, error: CallError) -> io::Error {
    match error {
        CallError::NotYet => io::ErrorKind::WouldBlock.into(),
        CallError::Failed(failure) => failure_error(failure),
        CallError::NotOpen | CallError::Closing => not_open(inner, io::ErrorKind::NotConnected),
    }
}

fn write_error<B: AsRef<[u8]>>(inner: &Inner<B>, error: CallError) -> io::Error {
    match error {
        CallError::NotYet => io::ErrorKind::WouldBlock.into(),
        CallError::Failed(failure) => failure_error(failure),
        CallError::NotOpen | CallError::Closing => not_open(inner, io::ErrorKind::BrokenPipe),
    }
}

/// Returns the error of a call on a connection that is not open: [`io::ErrorKind::WouldBlock`] if the worker
/// has not begun to open it, otherwise `kind`.
fn not_open<B: AsRef<[u8]>>(inner: &Inner<B>, kind: io::ErrorKind) -> io::Error {
    match inner.connection.state() {
        State::Listen => io::ErrorKind::WouldBlock.into(),
        _ => kind.into(),
    }
}

fn closed_error(closed: Closed) -> io::Error {
    closed.failure.map_or_else(|| io::ErrorKind::NotConnected.into(), failure_error)
}

fn failure_error(failure: Failure) -> io::Error {
    let kind = match failure {
        Failure::Reset => io::ErrorKind::ConnectionReset,
        Failure::Refused => io::ErrorKind::ConnectionRefused,
        Failure::TimedOut => io::ErrorKind::TimedOut,
        Failure::Aborted => io::ErrorKind::ConnectionAborted,
        Failure::Unreachable => io::ErrorKind::HostUnreachable,
    };
    io::Error::new(kind, failure)
}
