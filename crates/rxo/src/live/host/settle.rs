//! Settle: waits at the end of a connection until the peer has received everything.

use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

use rxo_driver::wait;
use rxo_host::TcpStream;
use thiserror::Error;

/// The reason why a peer may not have received everything that was sent.
#[derive(Debug, Error)]
pub enum Unsettled {
    /// The connection has failed.
    #[error("the peer did not get all that was sent: {0}")]
    Failed(io::Error),
    /// The connection was closed, and this many bytes at the end of the data were not acknowledged.
    #[error("the connection has ended before the peer had the last {0} bytes")]
    Ended(u32),
    /// The caller stopped waiting, and this many bytes at the end of the data were not acknowledged.
    #[error("interrupted before the peer had the last {0} bytes")]
    Interrupted(u32),
    /// The peer has acknowledged nothing for a minute; this many bytes at the end of the data are not acknowledged.
    #[error("the peer has not acknowledged the last {0} bytes for {seconds} s", seconds = TIMEOUT.as_secs())]
    Silent(u32),
}

/// Waits until the peer has acknowledged everything, including the FIN; only then may the host end. The stream
/// must be shut down for writing. Discards data that the peer still sends, and sets a read timeout. Calls
/// `is_over` at least every 50 ms, and returns early once that function returns `true`.
///
/// # Errors
/// If the peer has not received everything.
pub fn wait_until_delivered(
    stream: &TcpStream,
    is_over: impl Fn() -> bool,
) -> Result<(), Unsettled> {
    stream.set_read_timeout(Some(SHORT)).map_err(Unsettled::Failed)?;
    let mut settling = Settling::begin(stream);
    let mut is_peer_done = false;
    while !settling.is_done(stream, &is_over)? {
        is_peer_done = is_peer_done || drop_some(stream);
        if is_peer_done {
            // The peer has closed, so a read would return at once.
            wait::pause(TINY);
        }
    }
    Ok(())
}

/// A check, without blocking, of whether the peer of a stream that is shut down for writing has acknowledged
/// everything. It replaces [`wait_until_delivered`] for an owner of many streams that waits for events itself.
/// The owner must discard the data that the peers still send.
#[derive(Debug)]
pub struct Settling {
    left: u32,
    since: Instant,
}

impl Settling {
    /// Starts to check whether the peer of `stream` has acknowledged everything.
    #[must_use]
    pub fn begin(stream: &TcpStream) -> Self {
        Self { left: unacknowledged(stream), since: Instant::now() }
    }

    /// Returns `true` if the peer of `stream` has acknowledged everything, including the FIN; `false` while
    /// data is outstanding. Never blocks. Call it at least once a second.
    ///
    /// # Errors
    /// If the connection has failed. Also, while data is outstanding: if the connection has ended, the peer has
    /// made no progress for 60 seconds, or `is_over` returns `true`.
    pub fn is_done(
        &mut self,
        stream: &TcpStream,
        is_over: impl Fn() -> bool,
    ) -> Result<bool, Unsettled> {
        // A failed connection has nothing left to send, so failure is checked before and after.
        refuse_failed(stream)?;
        let (is_closed, left) = (stream.is_connected().is_err(), unacknowledged(stream));
        // A reset after all data leaves the FIN unacknowledged.
        if left == 0 || is_closed && left == 1 {
            return refuse_failed(stream).map(|()| true);
        }
        if is_closed {
            return Err(Unsettled::Ended(left));
        }
        if left != self.left {
            *self = Self { left, since: Instant::now() };
        }
        if is_over() {
            return Err(Unsettled::Interrupted(left));
        }
        if self.since.elapsed() >= TIMEOUT {
            return Err(Unsettled::Silent(left));
        }
        Ok(false)
    }
}

/// Returns the number of bytes that were written but are not acknowledged; the FIN counts as one.
fn unacknowledged(stream: &TcpStream) -> u32 {
    let seen = stream.statistics();
    (seen.snd_nxt - seen.snd_una).unsigned_abs() + seen.unsent
}

/// Returns an error if the connection has failed, because unsent data is then lost.
fn refuse_failed(stream: &TcpStream) -> Result<(), Unsettled> {
    stream.take_error().and_then(|failed| failed.map_or(Ok(()), Err)).map_err(Unsettled::Failed)
}

/// Reads and discards data from the peer for a short time. Returns `true` if the peer has closed its side, or
/// the connection has ended.
fn drop_some(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0; 4_096]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

/// The time without progress after which the peer counts as silent: long enough for several retransmissions
/// of one segment.
const TIMEOUT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);
const TINY: Duration = Duration::from_millis(1);
