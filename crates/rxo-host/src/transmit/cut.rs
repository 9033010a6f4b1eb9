//! Splits a GSO frame into segments, for devices without segmentation.

use std::num::NonZeroU16;

use rxo_tcp::Text;
use rxo_wire::Offsets;
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::segmentation::{Checksums, Part, Segmenter};

use super::headers::MOST_HEADERS_BYTES;

/// Builds the headers of the segments of a GSO frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutter<'h> {
    /// The headers of the whole GSO frame.
    whole: &'h [u8],
    /// The headers of a segment between the first and the last. Each segment gets a copy with its own fields.
    middle: [u8; MOST_HEADERS_BYTES],
    segmenter: Segmenter,
}

impl<'h> Cutter<'h> {
    /// Creates a cutter for a GSO frame with the headers `whole`, at the offsets `at`, and segments with `size`
    /// bytes of data. `None` if the headers are invalid. If `summer` is `None`, the device completes checksums.
    pub(super) fn new(
        whole: &'h [u8],
        at: Offsets,
        size: NonZeroU16,
        summer: Option<Summer>,
    ) -> Option<Self> {
        let checksums = summer.map_or(Checksums::Partial, Checksums::Complete);
        let segmenter = Segmenter::new(whole, at, size, checksums).ok()?;
        let mut middle = [0; MOST_HEADERS_BYTES];
        let headers = middle.get_mut(..whole.len())?;
        headers.copy_from_slice(whole);
        let part = Part { index: 1, offset: 0, bytes: size.get().into(), is_last: false };
        segmenter.write(headers, part, []).ok()?;
        Some(Self { whole, middle, segmenter })
    }

    /// Appends the headers of the segment `part`, which carries `text`, to `out`.
    #[inline(always)]
    pub(super) fn append(&self, part: Part, text: Text<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.middle[..self.whole.len()]);
        if !self.segmenter.write_middle(&mut out[start..], part, text.slices()) {
            out[start..].copy_from_slice(self.whole);
            // Cannot fail: there is enough space, and a segment is shorter than the GSO send.
            let _fits = self.segmenter.write(&mut out[start..], part, text.slices());
        }
    }
}

/// Returns the checksum of data in any number of pieces.
#[inline]
pub(super) fn text_sum(text: Text<'_>, summer: Summer) -> Sum {
    let (mut sum, mut offset) = (Sum::ZERO, 0);
    for piece in text.slices() {
        sum += summer.sum(piece).at(offset);
        offset += piece.len();
    }
    sum
}
