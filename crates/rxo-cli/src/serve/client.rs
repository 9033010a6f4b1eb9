//! What a conversation asks of a connection: to read and write, each for so long at most, and to
//! say that nothing more is sent.
//!
//! A trait of its own, so that a conversation is tested over plain sockets and pipes, and runs over
//! the stack's.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// A connection with a client.
pub(super) trait Client: Read + Write {
    /// A read that waits longer fails with [`io::ErrorKind::TimedOut`] or `WouldBlock`.
    ///
    /// # Errors
    /// When the connection is gone.
    fn read_within(&mut self, time: Duration) -> io::Result<()>;

    /// A write that waits longer fails with [`io::ErrorKind::TimedOut`] or `WouldBlock`.
    ///
    /// # Errors
    /// When the connection is gone.
    fn write_within(&mut self, time: Duration) -> io::Result<()>;

    /// Nothing more is sent; what was written still arrives.
    ///
    /// # Errors
    /// When the connection is gone.
    fn finish(&mut self) -> io::Result<()>;
}

/// Reads what there is, at most until `deadline`; 0 bytes are the end.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] at the deadline, and as the connection says.
pub(super) fn read_until(
    client: &mut impl Client,
    into: &mut [u8],
    deadline: Instant,
) -> io::Result<usize> {
    loop {
        client.read_within(left(deadline)?)?;
        match client.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map_err(timed_out),
        }
    }
}

/// Writes all of `bytes` until `deadline`: a client that takes little by little does not keep us.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] at the deadline, and as the connection says.
pub(super) fn write_until(
    client: &mut impl Client,
    mut bytes: &[u8],
    deadline: Instant,
) -> io::Result<()> {
    while !bytes.is_empty() {
        client.write_within(left(deadline)?)?;
        match client.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(timed_out(error)),
        }
    }
    Ok(())
}

/// Never zero: sockets refuse that.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left.max(SHORTEST)) }
}

/// Sockets say it in two ways.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

/// What clocks of sockets can tell from nothing.
const SHORTEST: Duration = Duration::from_millis(1);
