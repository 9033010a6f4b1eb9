//! Parses segments of any kind at known offsets.

use rxo_frame::Frame;
use rxo_tcp::Segment;
use rxo_wire::Offsets;

use crate::buffer::Buffer;

/// An iterator over the segments in frames whose headers start at equal offsets.
#[derive(Clone, Debug)]
pub(crate) struct Segments<F> {
    frames: F,
    at: Offsets,
}

impl<F> Segments<F> {
    /// Creates an iterator over the segments in `frames`. The end of each segment is read from its own
    /// headers, not from `at`.
    pub(super) const fn new(frames: F, at: Offsets) -> Self {
        Self { frames, at }
    }
}

impl<B: AsRef<[u8]>, F: Iterator<Item = Frame<Buffer<B>>>> Iterator for Segments<F> {
    type Item = Segment<Buffer<B>>;

    #[inline]
    fn next(&mut self) -> Option<Segment<Buffer<B>>> {
        let Self { frames, at } = self;
        frames.find_map(|frame| Segment::read(frame.bytes, *at, frame.arrived_at))
    }
}
