//! Sending threads, which keep the send buffers of their connections full.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::STALL_TIMEOUT;
use super::pattern::Pattern;
use crate::error::{Context, LabError, Result};
use crate::sys::{Epoll, Interest};

/// The sending end of one connection.
#[derive(Debug)]
pub(crate) struct SendingEnd {
    pub(crate) socket: TcpStream,
    pub(crate) pattern: Pattern,
    pub(crate) sent_bytes: u64,
    /// The number of bytes to send; `None` sends until the stop flag is set.
    pub(crate) limit_bytes: Option<u64>,
    /// The number of bytes of each write.
    pub(crate) write_bytes: usize,
    /// The position in the stream of a byte that is sent wrong, to test that the receiver finds the error;
    /// `None` sends no wrong byte.
    pub(crate) wrong_byte_at: Option<u64>,
}

/// Sends on all connections in turn until each reaches its limit or `stop` is set, then ends the streams.
/// Returns the connections with their sockets, because the kernel's counters are read from the sockets.
pub(crate) fn send_all(mut ends: Vec<SendingEnd>, stop: &AtomicBool) -> Result<Vec<SendingEnd>> {
    let cannot = || "the sending thread cannot wait for its sockets".to_owned();
    let epoll = Epoll::new().context(cannot)?;
    for (token, end) in ends.iter().enumerate() {
        epoll.add(&end.socket, token as u64, Interest::Write).context(cannot)?;
    }
    let mut open = ends.len();
    let mut ready = Vec::new();
    let mut last_progress = Instant::now();
    while open > 0 && !stop.load(Ordering::Relaxed) {
        ready.clear();
        epoll.wait(&mut ready, TICK).context(cannot)?;
        for token in ready.drain(..) {
            let end = &mut ends[token as usize];
            if end.send_some()? > 0 {
                last_progress = Instant::now();
            }
            if end.is_at_limit() {
                epoll.remove(&end.socket).context(cannot)?;
                end.finish()?;
                open -= 1;
            }
        }
        if last_progress.elapsed() > STALL_TIMEOUT {
            return Err(stalled(&ends));
        }
    }
    ends.iter().filter(|end| !end.is_at_limit()).try_for_each(SendingEnd::finish)?;
    Ok(ends)
}

impl SendingEnd {
    /// Continues the current write of a connection with one system call. Returns the number of bytes that the
    /// kernel accepted.
    pub(crate) fn send_some(&mut self) -> Result<usize> {
        let bytes = self.pattern.bytes(self.sent_bytes, self.next_length());
        let written = match self.wrong_byte_at {
            None => self.socket.write(bytes),
            Some(offset) => self.socket.write(&with_wrong_byte(bytes, self.sent_bytes, offset)),
        };
        match written {
            Ok(count) => {
                self.sent_bytes += count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(LabError::Transfer(format!(
                "a connection broke after {} bytes were sent: {error}",
                self.sent_bytes
            ))),
        }
    }

    fn next_length(&self) -> usize {
        let left = self.limit_bytes.map_or(u64::MAX, |limit| limit - self.sent_bytes);
        usize::try_from(left).unwrap_or(usize::MAX).min(self.write_bytes - self.begun_bytes())
    }

    /// Returns the number of bytes that the kernel has accepted of an incomplete write; 0 if no write is
    /// incomplete.
    pub(crate) fn begun_bytes(&self) -> usize {
        (self.sent_bytes % self.write_bytes as u64) as usize
    }

    pub(crate) fn is_at_limit(&self) -> bool {
        self.limit_bytes == Some(self.sent_bytes)
    }

    pub(crate) fn finish(&self) -> Result<()> {
        self.socket.shutdown(Shutdown::Write).map_err(|error| {
            LabError::Transfer(format!("a connection broke before its end was sent: {error}"))
        })
    }
}

fn with_wrong_byte(bytes: &[u8], at: u64, offset: u64) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    let place = offset.checked_sub(at).and_then(|place| usize::try_from(place).ok());
    if let Some(byte) = place.and_then(|place| copy.get_mut(place)) {
        *byte ^= 1;
    }
    copy
}

pub(super) fn stalled(ends: &[SendingEnd]) -> LabError {
    let sent: u64 = ends.iter().map(|end| end.sent_bytes).sum();
    LabError::Transfer(format!(
        "nothing could be sent for {} s, after {sent} bytes on {} connections",
        STALL_TIMEOUT.as_secs(),
        ends.len()
    ))
}

/// The time between two checks of the stop flag.
const TICK: Duration = Duration::from_millis(20);
