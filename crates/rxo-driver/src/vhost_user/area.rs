//! Areas: parts of files that a front end shares in addition to its guest's memory: the log of dirty pages,
//! and the record of chains in flight.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Wrong;
use super::fields::Fields;

/// The log of dirty pages: a part of a file.
#[derive(Clone, Debug)]
pub struct LogArea<F> {
    /// The length of the log in bytes, at least 1 and at most [`LogArea::MOST_BYTES`].
    pub bytes: u64,
    /// The offset of the log in its file, in bytes. Offset and length together do not exceed 64 bits.
    pub file_offset: u64,
    /// The descriptor of the file to map.
    pub file: F,
}

/// The number and the size of the rings whose chains in flight are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightShape {
    /// The number of rings.
    pub rings: u16,
    /// The number of descriptors of each ring, at most 32,768.
    pub ring_size: u16,
}

/// The record of chains in flight: a part of a file.
#[derive(Clone, Debug)]
pub struct InflightArea<F> {
    /// The number and the size of the rings whose chains the record contains.
    pub shape: InflightShape,
    /// The length of the record in bytes, at least 1 and at most [`InflightShape::MOST_BYTES`].
    pub bytes: u64,
    /// The offset of the record in its file, in bytes. Offset and length together do not exceed 64 bits.
    pub file_offset: u64,
    /// The descriptor of the file to map.
    pub file: F,
}

impl<F> LogArea<F> {
    /// The maximum length of a log of dirty pages, in bytes: enough for guest addresses up to 32 TiB.
    pub const MOST_BYTES: u64 = 1 << 30;

    pub(super) fn read(
        fields: &mut Fields<'_>,
        file: impl FnOnce() -> Result<F, Wrong>,
    ) -> Result<Self, Wrong> {
        let (bytes, file_offset) = read_part(fields, Self::MOST_BYTES)?;
        Ok(Self { bytes, file_offset, file: file()? })
    }

    pub(super) fn write(&self, payload: &mut Vec<u8>) {
        payload.extend(self.bytes.to_ne_bytes());
        payload.extend(self.file_offset.to_ne_bytes());
    }
}

impl LogArea<OwnedFd> {
    /// Returns this area with a borrowed descriptor.
    pub(super) fn borrowed(&self) -> LogArea<BorrowedFd<'_>> {
        LogArea { bytes: self.bytes, file_offset: self.file_offset, file: self.file.as_fd() }
    }
}

impl InflightShape {
    /// The maximum length of a record, in bytes: enough for 16 packed rings of 32,768 descriptors.
    pub const MOST_BYTES: u64 = 17 << 20;

    /// Reads the shape in a request for a record. Ignores the fields for length and offset before the shape,
    /// which have no meaning in this request.
    pub(super) fn read_alone(fields: &mut Fields<'_>) -> Result<Self, Wrong> {
        let (_bytes, _offset) = (fields.u64()?, fields.u64()?);
        Self::read(fields)
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, Wrong> {
        let both = fields.u32()?.to_ne_bytes();
        // The structure of the specification is padded to eight bytes.
        let _padding = fields.u32()?;
        let [a, b, c, d] = both;
        let (rings, ring_size) = (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]));
        if !(1..=MOST_RING_SIZE).contains(&ring_size) {
            return Err(Wrong::RingSize(ring_size.into()));
        }
        Ok(Self { rings, ring_size })
    }

    /// Writes the payload of a message about a record: length and offset of the part of a file, then the
    /// shape.
    pub(super) fn write(self, (bytes, file_offset): (u64, u64), payload: &mut Vec<u8>) {
        payload.extend(bytes.to_ne_bytes());
        payload.extend(file_offset.to_ne_bytes());
        payload.extend(self.rings.to_ne_bytes());
        payload.extend(self.ring_size.to_ne_bytes());
        payload.extend([0; 4]);
    }
}

impl<F> InflightArea<F> {
    pub(super) fn read(
        fields: &mut Fields<'_>,
        file: impl FnOnce() -> Result<F, Wrong>,
    ) -> Result<Self, Wrong> {
        let (bytes, file_offset) = read_part(fields, InflightShape::MOST_BYTES)?;
        let shape = InflightShape::read(fields)?;
        Ok(Self { shape, bytes, file_offset, file: file()? })
    }

    pub(super) fn write(&self, payload: &mut Vec<u8>) {
        self.shape.write((self.bytes, self.file_offset), payload);
    }
}

impl InflightArea<OwnedFd> {
    /// Returns this area with a borrowed descriptor.
    pub(super) fn borrowed(&self) -> InflightArea<BorrowedFd<'_>> {
        let Self { shape, bytes, file_offset, .. } = *self;
        InflightArea { shape, bytes, file_offset, file: self.file.as_fd() }
    }
}

/// Reads length and offset of a part of a file.
fn read_part(fields: &mut Fields<'_>, most: u64) -> Result<(u64, u64), Wrong> {
    let (bytes, offset) = (fields.u64()?, fields.u64()?);
    if bytes == 0 || bytes > most || offset.checked_add(bytes).is_none() {
        return Err(Wrong::Area { bytes, offset });
    }
    Ok((bytes, offset))
}

const MOST_RING_SIZE: u16 = 32_768;
