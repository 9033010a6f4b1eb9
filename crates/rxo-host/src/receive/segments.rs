//! Segments of any kind, read at places that are known.

use rxo_frame::Frame;
use rxo_tcp::Segment;
use rxo_wire::Offsets;

use crate::buffer::Buffer;

/// The segments in frames whose headers begin at the same places.
#[derive(Clone, Debug)]
pub(crate) struct Segments<F> {
    frames: F,
    at: Offsets,
}

impl<F> Segments<F> {
    /// The segments in `frames`. Where each ends is read from its own headers, and not in `at`.
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
