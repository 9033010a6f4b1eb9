//! A GSO send segmented, where the device does not do that; and text in two pieces, as the send buffer
//! holds it.

use rxo_wire::Offsets;
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::segmentation::{Checksums, Part, Segmenter};

/// The headers of a GSO send, and how those of its segments follow from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutter<'h> {
    headers: &'h [u8],
    segmenter: Segmenter,
}

impl<'h> Cutter<'h> {
    /// For a GSO send with these headers, which are where `at` says. `None` if they are invalid. Without
    /// a `summer` the device completes checksums.
    pub(super) fn new(headers: &'h [u8], at: Offsets, summer: Option<Summer>) -> Option<Self> {
        let checksums = summer.map_or(Checksums::Partial, Checksums::Complete);
        let segmenter = Segmenter::new(headers, at, checksums).ok()?;
        Some(Self { headers, segmenter })
    }

    /// Appends the headers of the segment `part`, whose text is `text`.
    #[inline(always)]
    pub(super) fn append(&self, part: Part, text: [&[u8]; 2], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(self.headers);
        // There is room, and a segment is shorter than the whole.
        let _fits = self.segmenter.write(&mut out[start..], part, &text);
    }
}

/// Takes the first `bytes` of text off, or all if there are fewer, and returns them.
#[inline]
pub(super) fn take<'t>(text: &mut [&'t [u8]; 2], bytes: usize) -> [&'t [u8]; 2] {
    let [first, second] = *text;
    if let Some((part, rest)) = first.split_at_checked(bytes) {
        *text = [rest, second];
        return [part, &[]];
    }
    let (part, rest) = second.split_at(second.len().min(bytes - first.len()));
    *text = [rest, &[]];
    [first, part]
}

/// The sum of text in two pieces.
pub(super) fn text_sum([first, second]: [&[u8]; 2], summer: Summer) -> Sum {
    summer.sum(first) + summer.sum(second).at(first.len())
}
