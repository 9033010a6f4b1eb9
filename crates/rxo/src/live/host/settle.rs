//! The end of a connection: waits until the peer has everything.

use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

use rxo_driver::wait;
use rxo_host::TcpStream;
use thiserror::Error;

/// Why a peer may not have everything that was sent.
#[derive(Debug, Error)]
pub enum Unsettled {
    /// The connection has failed.
    #[error("the peer did not get all that was sent: {0}")]
    Failed(io::Error),
    /// The connection is closed, and the peer has not acknowledged so many bytes.
    #[error("the connection has ended before the peer had the last {0} bytes")]
    Ended(u32),
    /// The caller gave up, and the peer has not acknowledged so many bytes.
    #[error("interrupted before the peer had the last {0} bytes")]
    Interrupted(u32),
    /// The peer acknowledged nothing for a minute, and lacks so many bytes.
    #[error("the peer has not acknowledged the last {0} bytes for {seconds} s", seconds = TIMEOUT.as_secs())]
    Silent(u32),
}

/// Waits until the peer has acknowledged everything, the FIN included; only then may the host end. The stream
/// must be shut down for writing. Drops what the peer still sends, and sets a timeout for reads. Ends early when
/// `is_over` returns true, which is asked at least every 50 ms.
///
/// # Errors
/// If the peer did not get everything.
pub fn settle(stream: &TcpStream, is_over: impl Fn() -> bool) -> Result<(), Unsettled> {
    stream.set_read_timeout(Some(SHORT)).map_err(Unsettled::Failed)?;
    let (mut left, mut since) = (unacknowledged(stream), Instant::now());
    let mut is_peer_done = false;
    loop {
        // A failed connection has nothing left to send, so failure is checked before and after.
        refuse_failed(stream)?;
        let (is_closed, now_left) = (stream.is_connected().is_err(), unacknowledged(stream));
        // A reset after all data leaves the FIN unacknowledged.
        if now_left == 0 || is_closed && now_left == 1 {
            return refuse_failed(stream);
        }
        if is_closed {
            return Err(Unsettled::Ended(now_left));
        }
        if now_left != left {
            (left, since) = (now_left, Instant::now());
        }
        if is_over() {
            return Err(Unsettled::Interrupted(left));
        }
        if since.elapsed() >= TIMEOUT {
            return Err(Unsettled::Silent(left));
        }
        is_peer_done = is_peer_done || drop_some(stream);
        if is_peer_done {
            // The peer has closed: a read would return at once.
            wait::pause(TINY);
        }
    }
}

/// Bytes that were written and not acknowledged; the FIN counts as one.
fn unacknowledged(stream: &TcpStream) -> u32 {
    let seen = stream.statistics();
    (seen.snd_nxt - seen.snd_una).unsigned_abs() + seen.unsent
}

/// An error if the connection has failed: what it still had to send is lost.
fn refuse_failed(stream: &TcpStream) -> Result<(), Unsettled> {
    stream.take_error().and_then(|failed| failed.map_or(Ok(()), Err)).map_err(Unsettled::Failed)
}

/// Drops what the peer sends, for a moment. Returns whether the peer or the connection has closed.
fn drop_some(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0; 4_096]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

/// A peer may pause. Long enough for several retransmissions of the same segment.
const TIMEOUT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);
const TINY: Duration = Duration::from_millis(1);
