//! The captures as named by the user, and standard input as one of them.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rxo_capture::{Capture, CaptureError};

/// What to read a capture from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A file.
    File {
        /// Where it is; a name on Unix is any bytes.
        path: PathBuf,
        /// What the user calls it, as far as that is text.
        name: String,
    },
    /// Standard input.
    Standard,
}

impl Input {
    /// What the user typed.
    pub(crate) fn new(typed: impl AsRef<OsStr>) -> Self {
        let path = Path::new(typed.as_ref());
        if path == Path::new("-") {
            return Self::Standard;
        }
        Self::File { path: path.to_owned(), name: path.display().to_string() }
    }

    /// What the user calls it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::File { name, .. } => name,
            Self::Standard => "-",
        }
    }

    /// Opens it. Standard input ends when `stop` is set.
    ///
    /// # Errors
    /// When it cannot be opened, or is no capture.
    pub(crate) fn open(&self, stop: &Arc<AtomicBool>) -> Result<Capture, CaptureError> {
        match self {
            Self::File { path, .. } => Capture::open(path),
            Self::Standard => Capture::from_reader("-", Box::new(Stoppable::new(Arc::clone(stop)))),
        }
    }

    /// How many bytes it has, when that can be known.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let Self::File { path, .. } = self else { return None };
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(metadata.len())
    }
}

/// Chunks under way between the thread that reads and the one that wants to be stopped.
const CHUNKS: usize = 4;
const CHUNK_BYTES: usize = 256 << 10;
/// How often it is asked whether to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Standard input, read by a thread: a read from a silent pipe cannot be interrupted, but nobody has
/// to wait for it.
struct Stoppable {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    stop: Arc<AtomicBool>,
}

impl Stoppable {
    fn new(stop: Arc<AtomicBool>) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS);
        thread::spawn(move || send_all(&sender));
        Self { chunks, chunk: io::Cursor::default(), stop }
    }
}

/// Ends with the input, or when nobody takes it any more.
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
            match self.chunks.recv_timeout(PATIENCE) {
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
