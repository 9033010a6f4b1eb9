//! A connection with timeouts for reads and writes, and an end of sending.
//!
//! A trait, so that the loop of a thread is tested over plain sockets and runs over the stack's.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// A connection with a client.
pub(super) trait Client: Read + Write {
    /// Sets the timeout of reads: one that waits longer fails with [`ErrorKind::TimedOut`] or
    /// [`ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// If the connection is gone.
    fn read_within(&mut self, time: Duration) -> io::Result<()>;

    /// Sets the timeout of writes, which fail in the same way.
    ///
    /// # Errors
    /// If the connection is gone.
    fn write_within(&mut self, time: Duration) -> io::Result<()>;

    /// Sends nothing more; what was written still arrives.
    ///
    /// # Errors
    /// If the connection is gone.
    fn finish(&mut self) -> io::Result<()>;
}

/// Reads once, until `until` at most. Returns the number of bytes, 0 at the end of the stream; `None`
/// if nothing came in time, or the call was interrupted.
///
/// # Errors
/// As the connection says.
pub(super) fn read(
    client: &mut impl Client,
    into: &mut [u8],
    until: Instant,
) -> io::Result<Option<usize>> {
    client.read_within(left(until))?;
    in_time(client.read(into))
}

/// Writes once, until `until` at most. Returns the number of bytes; `None` if none was taken in time,
/// or the call was interrupted.
///
/// # Errors
/// As the connection says.
pub(super) fn write(
    client: &mut impl Client,
    bytes: &[u8],
    until: Instant,
) -> io::Result<Option<usize>> {
    client.write_within(left(until))?;
    match in_time(client.write(bytes))? {
        Some(0) => Err(ErrorKind::WriteZero.into()),
        written => Ok(written),
    }
}

/// Never zero: sockets refuse that.
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(SHORTEST)
}

/// Sockets report a timeout in two ways.
fn in_time(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => match error.kind() {
            ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(None),
            _ => Err(error),
        },
    }
}

/// The shortest timeout of a socket.
const SHORTEST: Duration = Duration::from_millis(1);
