//! Receiving threads, which read their connections and check every byte.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::STALL_TIMEOUT;
use super::pattern::{Mismatch, Pattern};
use crate::error::{Context, LabError, Result};
use crate::sys::{Epoll, Interest};

/// The receiving end of one connection.
#[derive(Debug)]
pub struct ReceivingEnd {
    /// The non-blocking socket from which the stream is read.
    pub socket: TcpStream,
    /// The client's port, which identifies the connection.
    pub port: u16,
    /// The bytes that the stream should contain.
    pub pattern: Pattern,
    /// The number of bytes read so far.
    pub received_bytes: u64,
    /// The first wrong byte of the stream; `None` if there was none.
    pub mismatch: Option<Mismatch>,
}

/// Reads all connections in turn until the streams end. Adds the number of bytes to `total` after each read.
pub fn receive_all(mut ends: Vec<ReceivingEnd>, total: &AtomicU64) -> Result<Vec<ReceivingEnd>> {
    let cannot = || "the receiving thread cannot wait for its sockets".to_owned();
    let epoll = Epoll::new().context(cannot)?;
    for (token, end) in ends.iter().enumerate() {
        epoll.add(&end.socket, token as u64, Interest::Read).context(cannot)?;
    }
    let mut buffer = vec![0; READ_BYTES];
    let mut open = ends.len();
    let mut ready = Vec::new();
    let mut last_progress = Instant::now();
    while open > 0 {
        ready.clear();
        epoll.wait(&mut ready, TICK).context(cannot)?;
        for token in ready.drain(..) {
            let end = &mut ends[token as usize];
            match end.receive_some(&mut buffer)? {
                Received::Bytes(count) => _ = total.fetch_add(count, Ordering::Relaxed),
                Received::Nothing => continue,
                Received::End => {
                    epoll.remove(&end.socket).context(cannot)?;
                    open -= 1;
                }
            }
            last_progress = Instant::now();
        }
        if last_progress.elapsed() > STALL_TIMEOUT {
            return Err(stalled(open, &ends));
        }
    }
    Ok(ends)
}

enum Received {
    Bytes(u64),
    Nothing,
    End,
}

impl ReceivingEnd {
    fn receive_some(&mut self, buffer: &mut [u8]) -> Result<Received> {
        match self.socket.read(buffer) {
            Ok(0) => Ok(Received::End),
            Ok(count) => {
                self.check(&buffer[..count]);
                self.received_bytes += count as u64;
                Ok(Received::Bytes(count as u64))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Received::Nothing),
            Err(error) => Err(LabError::Transfer(format!(
                "the connection from port {} broke after {} bytes were received: {error}",
                self.port, self.received_bytes
            ))),
        }
    }

    /// Compares `bytes` with the pattern. Continues after a wrong byte, so that the cost does not depend on
    /// the result.
    fn check(&mut self, bytes: &[u8]) {
        if let Err((index, expected)) = self.pattern.check(self.received_bytes, bytes) {
            let mismatch = Mismatch {
                port: self.port,
                offset: self.received_bytes + index as u64,
                expected,
                received: bytes[index],
            };
            self.mismatch.get_or_insert(mismatch);
        }
    }
}

fn stalled(open: usize, ends: &[ReceivingEnd]) -> LabError {
    let received: u64 = ends.iter().map(|end| end.received_bytes).sum();
    LabError::Transfer(format!(
        "nothing arrived for {} s with {open} of {} connections unfinished, after {received} bytes",
        STALL_TIMEOUT.as_secs(),
        ends.len()
    ))
}

/// The maximum number of bytes of one read: about as many bytes as arrive on one connection while the other
/// connections are read.
const READ_BYTES: usize = 128 * 1024;
/// The time between two checks of the transfer's progress.
const TICK: Duration = Duration::from_millis(100);
