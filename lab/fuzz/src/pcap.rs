//! Target `pcap`: any bytes after a pcap header give the records that a naive reader finds, or end with an
//! error that names the position.

use crate::captures::{self, Outcome};

const HEADER_BYTES: usize = 24;

/// Reads `data` as a capture file.
///
/// # Panics
/// If a record is not in the file, or depends on the sizes of reads.
pub fn run(data: &[u8]) {
    let outcome = captures::read(data, usize::MAX, 64);
    captures::check(&outcome);
    captures::check_again(data, &outcome);
    captures::check_written(&outcome);
    if data.starts_with(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]) && data.len() >= HEADER_BYTES {
        check_naive(data, &outcome);
    }
}

/// Compares with a naive reader, for the usual format: little-endian, microseconds, version 2.4.
fn check_naive(data: &[u8], outcome: &Outcome) {
    let number =
        |at: usize| u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    let mut at = HEADER_BYTES;
    for record in &outcome.records {
        let kept_bytes = number(at + 8) as usize;
        assert_eq!(record.bytes.as_ref(), &data[at + 16..at + 16 + kept_bytes]);
        let nanos = u64::from(number(at)) * 1_000_000_000 + u64::from(number(at + 4)) * 1_000;
        assert_eq!((record.at.as_nanos(), record.original_bytes), (nanos, number(at + 12)));
        at += 16 + kept_bytes;
    }
    match &outcome.error {
        Some(error) => assert_eq!(error.offset(), at as u64),
        None => assert!(at == data.len() || outcome.records.len() >= 2_000),
    }
}
