//! Target `pcapng`: any bytes after a section header are blocks, or end with an error that names the
//! position.

use crate::captures;

/// Reads `data` as a capture file.
///
/// # Panics
/// If a record leaves the file, depends on the sizes of reads, or changes by being written.
pub fn run(data: &[u8]) {
    let outcome = captures::read(data, usize::MAX, 64);
    captures::check(&outcome);
    captures::check_again(data, &outcome);
    captures::check_written(&outcome);
    let bytes = outcome.records.iter().map(|record| record.bytes.as_ref().len()).sum::<usize>();
    assert!(bytes <= data.len(), "{bytes} bytes of packets in a file of {}", data.len());
    if let Some(error) = &outcome.error {
        assert!(error.offset() <= data.len() as u64, "{error}");
    }
}
