//! Unpacks bzip2: a file of consecutive streams. A block of at most 900 kB is unpacked whole or not at all.
//!
//! The `bzip2` crate's reader of several streams would discard the data that was unpacked in the step that
//! found damage. The amount of discarded data would depend on the sizes of reads.

use std::io::{self, BufRead, BufReader, Read};

use bzip2::{Decompress, Status};

use super::damaged;
use super::thread::Filler;

/// Unpacks every bzip2 stream of `packed`.
pub(super) fn unpack(packed: impl Read, output: &mut Filler) -> io::Result<()> {
    let packed = BufReader::with_capacity(128 * 1024, packed);
    let decoder = Decompress::new(false);
    output.take_all(&mut Streams { packed, decoder, is_between: false, failed: None })
}

/// All streams of a file, as one reader.
struct Streams<R> {
    packed: BufReader<R>,
    decoder: Decompress,
    /// `true` if the reader is between two streams: after the end of one, and before the start of the next.
    is_between: bool,
    /// The error that was found after the bytes that the last read returned. The next read returns this error.
    /// `None` if there is no error.
    failed: Option<io::Error>,
}

impl<R: Read> Streams<R> {
    /// Runs the decoder once. Returns the number of unpacked bytes; `None` at the end of the file.
    fn step(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let input = self.packed.fill_buf()?;
        let is_over = input.is_empty();
        if self.is_between {
            if is_over {
                return Ok(None);
            }
            self.decoder = Decompress::new(false);
            self.is_between = false;
        }
        let before = (self.decoder.total_in(), self.decoder.total_out());
        let result = self.decoder.decompress(input, into);
        let taken = (self.decoder.total_in() - before.0) as usize;
        let given = (self.decoder.total_out() - before.1) as usize;
        self.packed.consume(taken);
        match result {
            Ok(Status::StreamEnd) => self.is_between = true,
            Ok(_) if is_over && given == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) => self.failed = Some(damaged(format_args!("bzip2: {error}"))),
        }
        Ok(Some(given))
    }
}

impl<R: Read> Read for Streams<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !into.is_empty() {
            if let Some(failed) = self.failed.take() {
                return Err(failed);
            }
            match self.step(into)? {
                Some(0) => {}
                Some(given) => return Ok(given),
                None => break,
            }
        }
        Ok(0)
    }
}
