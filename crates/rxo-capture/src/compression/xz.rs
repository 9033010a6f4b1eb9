//! Unpacks xz: a file of consecutive streams, with padding between them. If a stream is damaged, the last 256
//! KiB before the damage may be missing in the output.

use std::io::{self, Read};

use lzma_rust2::XzReader;

use super::thread::Filler;
use super::watched::Watched;
use super::{damaged, unsupported};
use crate::limits::WINDOW_BYTES;

/// Unpacks every xz stream of `packed`. Refuses data whose dictionary needs more than [`WINDOW_BYTES`] bytes of
/// memory. The dictionary of `xz -9` has 64 MiB.
pub(super) fn unpack(packed: impl Read, output: &mut Filler) -> io::Result<()> {
    let mut packed = Watched::new(packed);
    let limit_kib = (WINDOW_BYTES / 1_024) as u32;
    let mut decoder = XzReader::new_mem_limit(&mut packed, true, limit_kib);
    let Err(error) = output.take_all(&mut decoder) else { return Ok(()) };
    // The decoder calls a magic number that is cut off damage.
    if let Some(failed) = packed.failed.take() {
        return Err(failed);
    }
    Err(match error.kind() {
        io::ErrorKind::OutOfMemory => unsupported(format_args!(
            "xz needs more than {WINDOW_BYTES} bytes of memory; unpack it first: xz -d"
        )),
        io::ErrorKind::Unsupported => {
            unsupported(format_args!("xz: {error}; unpack it first: xz -d"))
        }
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            damaged(format_args!("xz: {error}"))
        }
        _ => error,
    })
}
