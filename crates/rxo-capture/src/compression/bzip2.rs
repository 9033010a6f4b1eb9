//! Unpacks bzip2: a file of consecutive streams. A block of at most 900 kB is unpacked whole or not at all, and of a
//! damaged stream the last 256 KiB before the damage may be missing.

use std::io::{self, Read};

use bzip2::read::MultiBzDecoder;

use super::damaged;
use super::thread::Filler;

/// Unpacks every bzip2 stream of `packed`.
pub(super) fn unpack(packed: impl Read, output: &mut Filler) -> io::Result<()> {
    output.take_all(&mut MultiBzDecoder::new(packed)).map_err(|error| match error.kind() {
        // The decoder's own errors; those of the input have other kinds.
        io::ErrorKind::InvalidInput => damaged(format_args!("bzip2: {error}")),
        _ => error,
    })
}
