//! Reads standard input in such a way that a command can stop at any time.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// The maximum number of chunks that wait between the reading thread and its consumer.
const CHUNKS: usize = 4;
const CHUNK_BYTES: usize = 256 << 10;
/// The time between two checks of the flag that stops the reading.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Standard input, read by a separate thread. A read from a pipe without data cannot be interrupted, and the
/// command must not wait for the read.
pub(crate) struct Stoppable {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    stop: Arc<AtomicBool>,
}

impl Stoppable {
    pub(crate) fn new(stop: Arc<AtomicBool>) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS);
        thread::spawn(move || send_all(&sender));
        Self { chunks, chunk: io::Cursor::default(), stop }
    }
}

/// Sends all of standard input in chunks to the consumer. Returns when the input ends or the consumer was
/// dropped.
fn send_all(sender: &SyncSender<io::Result<Vec<u8>>>) {
    let mut input = io::stdin().lock();
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let result = match input.read(&mut chunk) {
            Ok(0) => return,
            Ok(bytes) => {
                chunk.truncate(bytes);
                Ok(chunk)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        if sender.send(result).is_err() {
            return;
        }
    }
}

impl Read for Stoppable {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let bytes = self.chunk.read(into)?;
            if bytes > 0 || into.is_empty() {
                return Ok(bytes);
            }
            match self.chunks.recv_timeout(CHECK_INTERVAL) {
                Ok(chunk) => self.chunk = io::Cursor::new(chunk?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if self.stop.load(Ordering::Relaxed) => {
                    return Ok(0);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
