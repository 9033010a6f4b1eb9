//! Division of a payload into parts, and the flags of each segment.
//!
//! Separate from the headers because a receiver that accepts GSO frames needs no headers. Such a receiver divides
//! the payload, and passes on each part with its sequence number and flags.

use core::num::NonZeroU16;
use core::ops::Range;

use crate::TcpFlags;

/// The position of one segment in a GSO frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of the segment in the GSO frame, from 0.
    pub index: usize,
    /// The offset of this segment's payload in the payload of the GSO frame, in bytes. The segment's sequence number is
    /// that of the GSO frame plus this offset.
    pub offset: usize,
    /// The length of this segment's payload, in bytes; never 0.
    pub bytes: usize,
    /// `true` for the last segment of the GSO frame.
    pub is_last: bool,
}

impl Part {
    /// Returns the range of this segment's payload in the payload of the GSO frame.
    #[inline]
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.offset..self.offset.saturating_add(self.bytes)
    }

    /// Returns `true` if the segment is neither the first nor the last.
    #[inline]
    #[must_use]
    pub const fn is_middle(self) -> bool {
        self.index > 0 && !self.is_last
    }

    /// Returns the flags of this segment if `whole` are those of the GSO frame: PSH and FIN are set only on
    /// the last segment, CWR only on the first (RFC 3168 section 6.1.2).
    #[inline]
    #[must_use]
    pub const fn flags(self, whole: TcpFlags) -> TcpFlags {
        let flags = if self.index == 0 { whole } else { whole.without(TcpFlags::CWR) };
        if self.is_last { flags } else { flags.without(TcpFlags::PSH.union(TcpFlags::FIN)) }
    }
}

/// Divides `payload_bytes` bytes of payload into parts of `size` bytes; the last may be shorter. Yields no
/// part if there is no payload.
///
/// # Examples
/// ```
/// use core::num::NonZeroU16;
/// use rxo_wire::segmentation::parts;
///
/// let ranges: Vec<_> = parts(2_500, NonZeroU16::new(1_000).unwrap()).map(|part| part.range()).collect();
/// assert_eq!(ranges, [0..1_000, 1_000..2_000, 2_000..2_500]);
/// ```
#[inline]
#[must_use]
pub const fn parts(payload_bytes: usize, size: NonZeroU16) -> Parts {
    Parts { next: 0, offset: 0, end: payload_bytes, size }
}

/// Iterator over the parts of a payload, in order; [`parts`] returns it.
#[derive(Clone, Debug)]
pub struct Parts {
    next: usize,
    offset: usize,
    end: usize,
    size: NonZeroU16,
}

impl Parts {
    /// Returns the number of parts yielded so far.
    pub(super) const fn taken(&self) -> usize {
        self.next
    }
}

impl Iterator for Parts {
    type Item = Part;

    #[inline]
    fn next(&mut self) -> Option<Part> {
        let left = self.end - self.offset;
        if left == 0 {
            return None;
        }
        let bytes = left.min(self.size.get().into());
        let part = Part { index: self.next, offset: self.offset, bytes, is_last: bytes == left };
        self.next += 1;
        self.offset += bytes;
        Some(part)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.offset).div_ceil(self.size.get().into());
        (left, Some(left))
    }
}

impl ExactSizeIterator for Parts {}
