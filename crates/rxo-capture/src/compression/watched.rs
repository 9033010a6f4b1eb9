//! A reader of the packed bytes of a capture, which remembers its first error.
//!
//! This is needed because decoders wrap an error of their input in an error of their own, or mistake the end of
//! the input for the end of the data.

use std::io::{self, BufReader, Read};

/// A buffered reader that stores the error of its input. The end of the input counts as the error
/// [`io::ErrorKind::UnexpectedEof`].
pub(super) struct Watched<R> {
    pub(super) reader: BufReader<R>,
    pub(super) failed: Option<io::Error>,
}

impl<R: Read> Watched<R> {
    /// Creates a reader of `packed`.
    pub(super) fn new(packed: R) -> Self {
        Self { reader: BufReader::with_capacity(128 * 1024, packed), failed: None }
    }

    /// Skips `length` bytes.
    ///
    /// # Errors
    /// The error of the input; `UnexpectedEof` if the input has fewer bytes.
    pub(super) fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.reader.by_ref().take(length), &mut io::sink())?;
        if skipped < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.reader.read(into) {
            Ok(0) if !into.is_empty() => {
                self.failed = Some(io::ErrorKind::UnexpectedEof.into());
                Ok(0)
            }
            Ok(count) => Ok(count),
            Err(error) => {
                self.failed = Some(io::Error::new(error.kind(), error.to_string()));
                Err(error)
            }
        }
    }
}
