//! gzip: members one after another.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use super::damaged;
use super::thread::Filler;

/// What a member begins with.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How much is unpacked at once, in bytes. Where the stream is damaged, the decoder keeps what it
/// unpacked in the same step to itself, so that at most this much is lost in front of the damage.
const STEP_BYTES: usize = 32 * 1024;

/// Unpacks every member of `packed`. Zeros behind the last are padding, as on tapes; anything else
/// is damage.
pub(super) fn unpack(packed: impl Read, output: &mut Filler) -> io::Result<()> {
    let mut packed = BufReader::with_capacity(128 * 1024, packed);
    loop {
        output.take_all(&mut InSteps(GzDecoder::new(&mut packed))).map_err(explain)?;
        if !is_next_member(&mut packed)? {
            return Ok(());
        }
    }
}

/// Reads a step at a time.
struct InSteps<R>(R);

impl<R: Read> Read for InSteps<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let step = into.len().min(STEP_BYTES);
        self.0.read(&mut into[..step])
    }
}

/// Whether another member follows; goes over padding.
fn is_next_member(packed: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let ready = packed.fill_buf()?;
        let Some(&first) = ready.first() else { return Ok(false) };
        match first {
            0 => {
                let zeros = ready.iter().take_while(|byte| **byte == 0).count();
                packed.consume(zeros);
            }
            _ if first == MAGIC[0] => return Ok(true),
            _ => return Err(damaged("something other than gzip follows the last member")),
        }
    }
}

/// The decoder's own complaints, in words that a reader of the message can use.
fn explain(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            damaged(format_args!("gzip: {error}"))
        }
        _ => error,
    }
}
