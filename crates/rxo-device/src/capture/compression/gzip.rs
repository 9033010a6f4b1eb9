//! gzip: members one after another.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use super::damaged;
use super::thread::Filler;

/// What a member begins with.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Unpacks every member of `packed`. Zeros behind the last are padding, as on tapes; anything else
/// is damage.
pub(super) fn unpack(packed: impl Read, output: &mut Filler) -> io::Result<()> {
    let mut packed = BufReader::with_capacity(128 * 1024, packed);
    loop {
        output.take_all(&mut GzDecoder::new(&mut packed)).map_err(explain)?;
        if !is_next_member(&mut packed)? {
            return Ok(());
        }
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
