//! Unpacks on a separate thread: a bounded queue carries full buffers to the reader, and another one carries
//! empty buffers back.
//!
//! Contract: the reader gets every byte, and then the error if there was one. At most [`QUEUED`] + 2 buffers
//! exist. When the reader is dropped, the thread ends at its next buffer. Dropping the reader does not wait for
//! the thread's end, because a thread that waits for input from a pipe only continues when the pipe delivers
//! data or is closed.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::Compression;

/// Maximum number of buffers in the queue to the reader.
const QUEUED: usize = 4;
const BUFFER_BYTES: usize = 256 * 1024;

/// A message from the unpacking thread. The end of the stream is an explicit message, so that a panic of the
/// thread is not mistaken for the end.
enum Message {
    Bytes(Vec<u8>),
    End(io::Result<()>),
}

/// Runs `decode` on a separate thread. The returned reader yields the bytes that `decode` writes to its [`Filler`].
///
/// # Errors
/// If no thread can be started.
pub(super) fn run(
    compression: Compression,
    decode: impl FnOnce(&mut Filler) -> io::Result<()> + Send + 'static,
) -> io::Result<Unpacked> {
    let (messages, received) = sync_channel(QUEUED);
    let (empties, returned) = sync_channel(QUEUED + 2);
    let mut filler = Filler { messages, returned };
    thread::Builder::new().name(format!("un-{compression}")).spawn(move || {
        let result = decode(&mut filler);
        // Fails if the reader was dropped, and then the result does not matter.
        let _ = filler.messages.send(Message::End(result));
    })?;
    Ok(Unpacked { received, empties, current: Vec::new(), at: 0, is_over: false })
}

/// The unpacking thread's end of the queue of buffers.
pub(super) struct Filler {
    messages: SyncSender<Message>,
    returned: Receiver<Vec<u8>>,
}

impl Filler {
    /// Passes everything that `decoded` yields to the reader.
    ///
    /// # Errors
    /// The error of `decoded`, after all bytes that preceded it; `BrokenPipe` if the reader was dropped.
    pub(super) fn take_all(&mut self, decoded: &mut impl Read) -> io::Result<()> {
        loop {
            let mut buffer = self.returned.try_recv().unwrap_or_default();
            buffer.resize(BUFFER_BYTES, 0);
            let (filled, result) = fill(decoded, &mut buffer);
            buffer.truncate(filled);
            if filled > 0 {
                self.messages.send(Message::Bytes(buffer)).map_err(|_| nobody_reads())?;
            }
            result?;
            if filled == 0 {
                return Ok(());
            }
        }
    }
}

fn nobody_reads() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

/// Fills `buffer` from `decoded`, until it is full or the input ends. Returns the number of bytes in
/// `buffer`, and the error if reading failed.
fn fill(decoded: &mut impl Read, buffer: &mut [u8]) -> (usize, io::Result<()>) {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match decoded.read(room) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(()))
}

/// The reader's end of the queue of buffers, which yields the unpacked data.
pub(super) struct Unpacked {
    received: Receiver<Message>,
    empties: SyncSender<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
    is_over: bool,
}

impl Unpacked {
    /// Waits for the next buffer from the thread; the buffer is empty at the end of the data.
    fn next_buffer(&mut self) -> io::Result<()> {
        let used = std::mem::take(&mut self.current);
        self.at = 0;
        if used.capacity() > 0 {
            // If the way back is full, the buffer is freed.
            let _ = self.empties.try_send(used);
        }
        match self.received.recv() {
            Ok(Message::Bytes(bytes)) => self.current = bytes,
            Ok(Message::End(result)) => {
                self.is_over = true;
                return result;
            }
            Err(_) => {
                self.is_over = true;
                return Err(super::damaged("the decoder gave up"));
            }
        }
        Ok(())
    }
}

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.current.len() && !self.is_over {
            self.next_buffer()?;
        }
        let ready = self.current.get(self.at..).unwrap_or_default();
        let count = ready.len().min(into.len());
        into[..count].copy_from_slice(&ready[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(
        decode: impl FnOnce(&mut Filler) -> io::Result<()> + Send + 'static,
    ) -> (Vec<u8>, io::Result<usize>) {
        let mut bytes = Vec::new();
        let result = run(Compression::Gzip, decode).unwrap().read_to_end(&mut bytes);
        (bytes, result)
    }

    #[test]
    fn everything_arrives_in_order_and_then_the_error() {
        let long: Vec<u8> = (0..3 * BUFFER_BYTES + 5).map(|number| number as u8).collect();
        let expected = long.clone();
        let (bytes, result) = read_all(move |filler| {
            filler.take_all(&mut &long[..])?;
            Err(io::ErrorKind::UnexpectedEof.into())
        });
        assert!(bytes == expected, "{} bytes of {}", bytes.len(), expected.len());
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_decoder_that_panics_is_an_error_and_no_end() {
        let (bytes, result) = read_all(|filler| {
            filler.take_all(&mut &b"before"[..])?;
            panic!("a decoder that is wrong");
        });
        assert_eq!(bytes, b"before");
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    /// A reader that yields a byte, then an error, then the end.
    struct Failing(u8);

    impl Read for Failing {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => (&[7][..]).read(into),
                2 => Err(io::ErrorKind::InvalidData.into()),
                _ => Ok(0),
            }
        }
    }

    #[test]
    fn what_fails_once_has_failed() {
        let (bytes, result) = read_all(|filler| filler.take_all(&mut Failing(0)));
        assert_eq!(bytes, [7]);
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn an_error_is_reported_once() {
        let mut reader = run(Compression::Zstd, |_| Err(io::ErrorKind::Other.into())).unwrap();
        assert!(reader.read(&mut [0]).is_err());
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    }
}
