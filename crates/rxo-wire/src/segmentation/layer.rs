//! What segmentation asks of TCP and of UDP.

use super::{Checksums, Part};
use crate::checksum::{Sum, Summer};

/// The transport headers of all segments: what they follow from, and how they are written. Implemented for
/// [`Tcp`](super::Tcp) and [`Udp`](super::Udp), and for nothing outside.
pub trait Layer: Copy {
    /// As much of a header as differs from segment to segment.
    type Start;
    /// The protocol number.
    const PROTOCOL: u8;

    /// Reads `header`: the whole transport header, options included. `pseudo` is the sum of the pseudo-header without
    /// the length. `None` if the header is too short.
    fn read(header: &[u8], pseudo: Sum, checksums: Checksums) -> Option<Self>;

    /// The sum of the header and the pseudo-header of a segment with `bytes` bytes, header and payload, without what
    /// differs; for partial checksums that of the pseudo-header.
    fn sum(&self, bytes: u32) -> Sum;

    /// The part of a header that differs; `None` if it is too short.
    fn start(header: &mut [u8]) -> Option<&mut Self::Start>;

    /// Writes the fields of the segment `part` into `header`, a copy of the header. `sum` is what
    /// [`Layer::sum`] gives for its length, `seed` is `sum` folded.
    fn write<'p>(
        &self,
        header: &mut Self::Start,
        part: Part,
        sum_and_seed: (Sum, u16),
        payload: impl IntoIterator<Item = &'p [u8]>,
    );

    /// Writes the fields in which the headers of segments in the middle differ: of TCP the sequence number, and a
    /// complete checksum.
    fn write_middle<'p>(
        &self,
        header: &mut Self::Start,
        part: Part,
        sum: Sum,
        payload: impl IntoIterator<Item = &'p [u8]>,
    );
}

/// The sum of payload in several pieces.
#[inline(always)]
pub(super) fn sum_of<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, summer: Summer) -> Sum {
    let (mut sum, mut offset) = (Sum::ZERO, 0);
    for piece in pieces {
        sum += summer.sum(piece).at(offset);
        offset += piece.len();
    }
    sum
}
