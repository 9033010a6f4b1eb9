//! Unpacks LZ4: a file of consecutive frames. Skippable frames are ignored.

use std::io::{self, BufRead, Read};

use lz4_flex::frame::{Error, FrameDecoder};

use super::thread::Filler;
use super::watched::Watched;
use super::{damaged, unsupported};

/// Unpacks every LZ4 frame of `packed`. A frame has blocks of at most 4 MiB, which bounds the memory.
pub(super) fn unpack(packed: impl Read, output: &mut Filler) -> io::Result<()> {
    let mut packed = Watched::new(packed);
    while !packed.reader.fill_buf()?.is_empty() {
        let mut frame = Frame { decoder: FrameDecoder::new(&mut packed), is_done: false };
        let result = output.take_all(&mut frame);
        // The decoder takes the end of the input between two blocks for the end of the frame, but it never reads behind
        // the mark that ends one.
        if let Some(error) = packed.failed.take() {
            return Err(error);
        }
        match result {
            Ok(()) => {}
            Err(error) => packed.skip(skippable(error)?)?,
        }
    }
    Ok(())
}

/// Returns the length of the skippable frame whose head the decoder has read, in bytes.
///
/// # Errors
/// Any other error of the decoder, converted into an error of the file.
fn skippable(error: io::Error) -> io::Result<u64> {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    match cause {
        Some(Error::SkippableFrame(bytes)) => Ok(u64::from(*bytes)),
        Some(Error::DictionaryNotSupported) => {
            Err(unsupported("lz4 needs a dictionary; unpack it first: lz4 -d -D DICTIONARY"))
        }
        Some(cause) => Err(damaged(format_args!("lz4: {cause}"))),
        None => Err(error),
    }
}

/// A reader that ends at the end of one LZ4 frame. The decoder alone would continue with the next frame.
struct Frame<R: Read> {
    decoder: FrameDecoder<R>,
    is_done: bool,
}

impl<R: Read> Read for Frame<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_done {
            return Ok(0);
        }
        let result = self.decoder.read(into);
        self.is_done = !matches!(result, Ok(1..));
        result
    }
}
