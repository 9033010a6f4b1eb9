//! Notes, which encode the properties of records that a merged packet cannot express in a few bytes.
//!
//! A note accompanies an aggregate in a capture. Together with the merged packet, the note restores every
//! original record byte for byte: headers, arrival times, positions in the file, link headers, padding,
//! original lengths. This module is only a codec, which uses neither files nor an engine.
//!
//! # Why a note is small
//! Headers are predicted from the last segment to the first. The merged header equals the last segment's header
//! except for sequence number, IP ID, lengths and flags, and each segment's header resembles the header of the
//! next segment. Checksums are computed. Only deviations from the prediction are written; a segment in a steady
//! stream takes one byte in addition to its arrival time.
//!
//! # Contract
//! [`write()`] and [`read()`] are inverse for every aggregate of the engine. [`read()`] refuses
//! inconsistent input, and ends with a check of everything that it restores; it never panics. Its
//! allocations are bounded in advance: an aggregate has no more payload, and so no more segments,
//! than an IP packet has bytes, and no header is longer than 256 bytes.
//!
//! # Format
//! Numbers are LEB128; signed ones are zigzag-coded. The order is: position of the last record (signed,
//! relative to the expected position), segment count, lengths of link, IP and TCP header, `Shape` bits, for a
//! tunnel the offsets of its IP and UDP header, payload sizes; then for each segment, from the last to the
//! first, `Differs` bits and the values that they announce; at the end a CRC-32 of the records, four bytes,
//! least significant first. In the CRC, positions are relative to the expected position, so that a note can be
//! verified by itself.

mod bits;
mod header;
mod number;
mod outer;
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
pub use self::outer::Outer;
pub use self::read::{Restored, read};
pub use self::write::write;

/// An original record of an aggregate, from which a note is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Original<'a> {
    /// The captured bytes of the record, with link header and padding.
    pub bytes: &'a [u8],
    /// The offset of the record's IP header, in bytes.
    pub network: usize,
    /// The length of the record on the wire, in bytes.
    pub original_bytes: u32,
    /// The time of the record, in nanoseconds since 1970 UTC.
    pub at_ns: u64,
    /// The position of the record in the file, from 0.
    pub place: u64,
}

/// A merged packet, with the time and the position that are known without its note.
#[derive(Clone, Copy, Debug)]
pub struct Merged<'a> {
    /// All bytes of the merged packet, with link header, without padding.
    pub bytes: &'a [u8],
    /// The time of the merged packet in the file in nanoseconds since 1970 UTC, which is the time of one of its
    /// segments.
    pub at_ns: u64,
    /// A position in the file near the positions of the records. The reader of the note knows this position,
    /// too.
    pub expected_place: u64,
}

/// The reason why a note is refused: it is damaged, or belongs to another packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("what rxo remembered of it {0}")]
pub struct BadNote(pub(crate) &'static str);

/// The maximum length of a link header, and of the other headers together, in bytes. The engine does not
/// coalesce packets with longer headers. The limit bounds the memory for reading a damaged note.
const MAX_HEADER_BYTES: usize = 256;

/// The maximum payload of an aggregate, in bytes: the largest value of the length field of an IP packet. An
/// aggregate has at most one segment for each byte of payload.
const MAX_PAYLOAD_BYTES: usize = u16::MAX as usize;

/// The length of the CRC-32 that ends a note, in bytes.
const CHECK_BYTES: usize = 4;

/// The checksum at the end of a note. The checksum covers all properties of the records, in order.
#[derive(Default)]
struct Check(Crc);

impl Check {
    /// Adds the next record to the checksum. `expected_place` is the position of the merged packet.
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

    /// Returns the checksum as the bytes that end the note.
    fn bytes(self) -> [u8; CHECK_BYTES] {
        self.0.sum().to_le_bytes()
    }
}
