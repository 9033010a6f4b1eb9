//! Target `packed`: any bytes behind the magic of a compression are unpacked, or end with one error line.

use crate::captures;

/// Reads `data` as a capture file.
///
/// # Panics
/// If a decoder panics, or the result depends on the sizes of reads.
pub fn run(data: &[u8]) {
    let outcome = captures::read(data, usize::MAX, 64);
    captures::check(&outcome);
    captures::check_again(data, &outcome);
}
