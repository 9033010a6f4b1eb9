//! A block of pcapng: type, length, body, and the length repeated.

use core::ops::Range;

use crate::Fault;
use crate::limits::RECORD_BYTES;
use crate::stream::Stream;

/// The length of the shortest block in bytes: a type and two length fields of 4 bytes each.
pub(crate) const LEAST_BYTES: u32 = 12;

/// The offset of the body in a block, in bytes.
pub(crate) const BODY_AT: usize = 8;

/// A block that was read completely, and whose two length fields are equal.
pub(crate) struct Block<'a> {
    /// The body of the block: the bytes between its two length fields.
    pub(crate) body: &'a [u8],
    is_big_endian: bool,
}

impl<'a> Block<'a> {
    /// Returns the next block of `stream` without consuming it, so that an error in the block is reported
    /// with the position of its start.
    #[inline]
    pub(crate) fn read(
        stream: &'a mut Stream,
        length: u32,
        is_big_endian: bool,
    ) -> Result<Self, Fault> {
        check_length(length)?;
        if length as usize > RECORD_BYTES {
            return Err(too_long(length));
        }
        let length = length as usize;
        if !stream.has(length).map_err(Fault::Read)? {
            return Err(cut_short(stream, length));
        }
        let bytes = stream.bytes().get(..length).unwrap_or_default();
        let block =
            Self { body: bytes.get(BODY_AT..length - 4).unwrap_or_default(), is_big_endian };
        let again = number(bytes, length - 4, is_big_endian);
        if again as usize == length { Ok(block) } else { Err(disagree(length as u32, again)) }
    }

    /// Returns an error if the body of the block has fewer than `bytes` bytes; `what` names the block in the
    /// message.
    #[inline]
    pub(crate) fn require(&self, bytes: usize, what: &str) -> Result<(), Fault> {
        if self.body.len() >= bytes { Ok(()) } else { Err(too_short(what, self.body.len(), bytes)) }
    }

    /// Returns the 32-bit number at offset `at` of the body.
    #[inline]
    pub(crate) fn number(&self, at: usize) -> u32 {
        number(self.body, at, self.is_big_endian)
    }

    /// Returns the 16-bit number at offset `at` of the body.
    #[inline]
    pub(crate) fn short(&self, at: usize) -> u16 {
        let bytes = self.body.get(at..).and_then(|rest| rest.first_chunk());
        let bytes = bytes.copied().unwrap_or_default();
        if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    /// Finds the packet and its options in the block and returns their ranges. The packet begins at
    /// `packet_at` in the body and has `kept_bytes` bytes.
    #[inline]
    pub(crate) fn packet(
        &self,
        packet_at: usize,
        kept_bytes: u32,
    ) -> Result<(Range<usize>, Range<usize>), Fault> {
        let kept_bytes = kept_bytes as usize;
        let room = self.body.len() - packet_at;
        if kept_bytes > room {
            return Err(too_short("a packet", room, kept_bytes));
        }
        let start = BODY_AT + packet_at;
        // Bodies are multiples of four bytes, so if the packet fits, its padding fits too.
        let options_at = start + kept_bytes.next_multiple_of(4);
        Ok((start..start + kept_bytes, options_at..BODY_AT + self.body.len()))
    }
}

/// Returns the type and the length of the block at the start of `bytes`.
#[inline]
pub(crate) fn head(bytes: &[u8], is_big_endian: bool) -> (u32, u32) {
    (number(bytes, 0, is_big_endian), number(bytes, 4, is_big_endian))
}

/// Returns `true` if the section at the start of `bytes` is big-endian.
pub(crate) fn section_order(bytes: &[u8]) -> Result<bool, Fault> {
    match number(bytes, 8, false) {
        0x1a2b_3c4d => Ok(false),
        0x4d3c_2b1a => Ok(true),
        magic => Err(Fault::Damaged(format!(
            "the byte order of a section is {magic:08x}, neither 1a2b3c4d nor 4d3c2b1a"
        ))),
    }
}

/// Skips a block of `length` bytes, which may be any number, without keeping it.
pub(crate) fn skip(stream: &mut Stream, length: u32, is_big_endian: bool) -> Result<(), Fault> {
    check_length(length)?;
    let is_there = stream.skip(u64::from(length) - 4).map_err(Fault::Read)?;
    if !is_there || !stream.has(4).map_err(Fault::Read)? {
        return Err(Fault::Truncated(format!("a block of {length} bytes is cut off")));
    }
    let again = number(stream.bytes(), 0, is_big_endian);
    if again != length {
        return Err(disagree(length, again));
    }
    stream.consume(4);
    Ok(())
}

/// Returns the result for a stream that has too few bytes left for a block: `None` at the end of the file, or
/// the error for a truncated block.
#[cold]
pub(crate) fn end<T>(stream: &Stream) -> Result<Option<T>, Fault> {
    match stream.bytes().len() {
        0 => Ok(None),
        left => Err(Fault::Truncated(format!("a block begins, but only {left} bytes follow"))),
    }
}

#[inline]
pub(crate) fn number(bytes: &[u8], at: usize, is_big_endian: bool) -> u32 {
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

#[inline]
fn check_length(length: u32) -> Result<(), Fault> {
    if length >= LEAST_BYTES && length.is_multiple_of(4) { Ok(()) } else { Err(impossible(length)) }
}

#[cold]
fn impossible(length: u32) -> Fault {
    Fault::Damaged(format!("a block claims {length} bytes, not a multiple of 4 from 12 on"))
}

#[cold]
fn too_long(length: u32) -> Fault {
    Fault::Damaged(format!("a block claims {length} bytes, at most {RECORD_BYTES} are possible"))
}

#[cold]
fn too_short(what: &str, room: usize, wanted: usize) -> Fault {
    Fault::Damaged(format!("{what} of {wanted} bytes stands in a block with room for {room}"))
}

#[cold]
fn cut_short(stream: &Stream, length: usize) -> Fault {
    let left = stream.bytes().len();
    Fault::Truncated(format!("a block of {length} bytes begins, but only {left} follow"))
}

#[cold]
fn disagree(length: u32, again: u32) -> Fault {
    Fault::Damaged(format!("a block's length is {length} at its beginning, {again} at its end"))
}
