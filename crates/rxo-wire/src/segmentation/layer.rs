//! The interface that TCP and UDP implement for segmentation.

use super::{Checksums, Part};
use crate::checksum::{Sum, Summer};

/// State and functions that compute and write the transport headers of all segments. Implemented only for
/// [`Tcp`](super::Tcp) and [`Udp`](super::Udp).
pub trait Layer: Copy {
    /// The start of a transport header, which contains all fields that segmentation changes.
    type Start;
    /// The IP protocol number of the transport protocol.
    const PROTOCOL: u8;

    /// Reads `header`: the whole transport header, options included. `pseudo` is the sum of the pseudo-header without
    /// the transport length. `None` if the header is too short.
    fn read(header: &[u8], pseudo: Sum, checksums: Checksums) -> Option<Self>;

    /// Returns the sum of header and pseudo-header of a segment with `bytes` bytes (header and payload), without the
    /// fields that differ between segments. For partial checksums only the pseudo-header is summed.
    fn sum(&self, bytes: u32) -> Sum;

    /// Returns the start of `header`, which contains all fields that segmentation changes; `None` if `header` is too
    /// short.
    fn start(header: &mut [u8]) -> Option<&mut Self::Start>;

    /// Writes the fields of the segment `part` into `header`, a copy of the original header. The pair is the
    /// result of [`Layer::sum`] for the segment's length, and its folded value.
    fn write<'p>(
        &self,
        header: &mut Self::Start,
        part: Part,
        sum_and_seed: (Sum, u16),
        payload: impl IntoIterator<Item = &'p [u8]>,
    );

    /// Writes only the fields that differ between segments in the middle: for TCP the sequence number, and a
    /// complete checksum.
    fn write_middle<'p>(
        &self,
        header: &mut Self::Start,
        part: Part,
        sum: Sum,
        payload: impl IntoIterator<Item = &'p [u8]>,
    );
}

/// Returns the sum of a payload that consists of several slices.
#[inline(always)]
pub(super) fn sum_of<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, summer: Summer) -> Sum {
    let (mut sum, mut offset) = (Sum::ZERO, 0);
    for piece in pieces {
        sum += summer.sum(piece).at(offset);
        offset += piece.len();
    }
    sum
}
