//! Opens, counts and unpacks the bytes of a capture.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compression::{self, Compression};
use super::{CaptureError, Fault};

/// The source of a capture's bytes, which are unpacked if the file is compressed.
pub(super) struct Input {
    pub(super) bytes: Box<dyn Read>,
    pub(super) compression: Option<Compression>,
    /// The number of bytes read from the file, before unpacking.
    pub(super) file_bytes_read: Arc<AtomicU64>,
    /// The size of the file in bytes; `None` for a pipe.
    pub(super) file_bytes: Option<u64>,
}

impl Input {
    /// Opens the file at `path` as the source of a capture's bytes.
    pub(super) fn open(path: &Path) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let failed = |error| CaptureError::new(&name, 0, None, Fault::Open(error));
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let mut input = Self::new(&name, Box::new(file))?;
        input.file_bytes = metadata.is_file().then_some(metadata.len());
        Ok(input)
    }

    /// Creates the source of a capture's bytes from `reader`. `name` appears in messages.
    pub(super) fn new(name: &str, reader: Box<dyn Read + Send>) -> Result<Self, CaptureError> {
        let file_bytes_read = Arc::new(AtomicU64::new(0));
        let mut counted = Counted { reader, count: Arc::clone(&file_bytes_read) };
        // On a directory opening succeeds and the first read fails, so this counts as a failure to open.
        let failed = |error| CaptureError::new(name, 0, None, Fault::Open(error));
        let head = first_bytes(&mut counted).map_err(failed)?;
        let compression = Compression::of(&head);
        let whole = Cursor::new(head).chain(counted);
        let bytes: Box<dyn Read> = match compression {
            None => Box::new(whole),
            Some(compression) => Box::new(compression::unpack(compression, whole).map_err(failed)?),
        };
        Ok(Self { bytes, compression, file_bytes_read, file_bytes: None })
    }
}

/// Returns the first four bytes of `reader`, or all bytes if there are fewer.
fn first_bytes(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(4).read_to_end(&mut head)?;
    Ok(head)
}

/// A reader that counts the bytes read, for showing progress.
struct Counted {
    reader: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Repeated here, because decoders would take an interruption for the end or for damage.
        let count = loop {
            match self.reader.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
