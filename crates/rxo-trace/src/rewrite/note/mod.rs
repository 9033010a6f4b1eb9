//! What a merged packet cannot say, in few bytes.
//!
//! A note stands beside an aggregate in a capture and, together with the merged packet, gives back
//! every original record byte for byte: headers, arrival times, places in the file, link headers,
//! padding, original lengths. It is a codec and nothing else: no files, no engine.
//!
//! # How it is so small
//! Headers are predicted, from the last segment to the first: the merged header is the last
//! segment's but for sequence number, IP ID, lengths and flags, and each segment's is that of the
//! one after it. Checksums are computed. Only what the prediction misses is written; a segment in a
//! steady stream takes its arrival time and one byte.
//!
//! # Contract
//! [`write()`] and [`read()`] are inverse for every aggregate of the engine. [`read()`] refuses what
//! does not fit together, whatever the bytes, and ends with a check of all it gives back; it never
//! panics. What it allocates is bounded before it begins: no aggregate has more payload than an IP
//! packet, so none has more segments, and no header is longer than 256 bytes.
//!
//! # Format
//! Numbers are LEB128; signed ones are zigzag-coded. In this order: place of the last record
//! (signed, against the expected one), segment count, bytes of link header, of IP header, of TCP
//! header, `Shape` bits, payload sizes; then from the last segment to the first `Differs` bits
//! and what they announce; at the end a CRC-32 of the records, four bytes, least significant first.
//! Places count from the expected one there, so that a note can be checked by itself.

mod bits;
mod header;
mod number;
mod patch;
mod read;
mod write;

#[cfg(test)]
mod tests;

use thiserror::Error;

use super::crc::Crc;

pub(crate) use self::bits::{Differs, Shape};
pub use self::number::Reader;
pub(crate) use self::number::{put_number, put_signed};
pub use self::read::{Restored, read};
pub use self::write::write;

/// One record that went into an aggregate, or came out of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Original<'a> {
    /// Its captured bytes, link header and padding included.
    pub bytes: &'a [u8],
    /// Where its IP header begins, in bytes.
    pub network: usize,
    /// How many bytes it had on the wire.
    pub original_bytes: u32,
    /// When it was captured, in nanoseconds since 1970 UTC.
    pub at_ns: u64,
    /// Its place in the file, from 0.
    pub place: u64,
}

/// Where the headers of a merged packet begin, in bytes from its first link-layer byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The IP header.
    pub network: usize,
    /// The TCP header.
    pub transport: usize,
    /// The payload.
    pub payload: usize,
}

/// A merged packet and what is known without its note.
#[derive(Clone, Copy, Debug)]
pub struct Merged<'a> {
    /// All its bytes, link header included, without padding.
    pub bytes: &'a [u8],
    /// The time written beside it: that of one of its segments, whichever.
    pub at_ns: u64,
    /// A place near those of the records, which whoever reads the note knows too.
    pub expected_place: u64,
}

/// A note that does not belong to its packet, or was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("what rxo remembered of it {0}")]
pub struct BadNote(pub(crate) &'static str);

/// The most bytes of a link header, and of all headers after it, that a note may speak of. The
/// engine coalesces no longer ones; the limit bounds what a damaged note can make of memory.
const MAX_HEADER_BYTES: usize = 256;

/// The most payload of an aggregate, and so the most segments: what the length of an IP packet can
/// say.
const MAX_PAYLOAD_BYTES: usize = u16::MAX as usize;

/// The CRC-32 that ends a note.
const CHECK_BYTES: usize = 4;

/// The check of a note: covers everything about the records, in order.
#[derive(Default)]
struct Check(Crc);

impl Check {
    /// Takes the next record in; `expected_place` is that of the merged packet.
    fn add(&mut self, record: &Original<'_>, expected_place: u64) {
        let mut head = [0; 24];
        let place = record.place.wrapping_sub(expected_place);
        head[..8].copy_from_slice(&place.to_le_bytes());
        head[8..16].copy_from_slice(&record.at_ns.to_le_bytes());
        head[16..20].copy_from_slice(&record.original_bytes.to_le_bytes());
        head[20..].copy_from_slice(&(record.bytes.len() as u32).to_le_bytes());
        self.0.update(&head);
        self.0.update(record.bytes);
    }

    /// The bytes that end the note.
    fn bytes(self) -> [u8; CHECK_BYTES] {
        self.0.sum().to_le_bytes()
    }
}
