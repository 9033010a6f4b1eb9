//! Passes the frames of a delivery to a connection, in buffers that it can keep.

use rxo_coalesce::IntoFrames;
use rxo_frame::{Frame, Frames};

use crate::buffer::Buffer;

/// An iterator over frames whose buffers belong to the device. Each buffer is wrapped for the connection when
/// the iterator returns its frame; the engine holds unwrapped buffers.
#[derive(Debug)]
pub(crate) struct Lent<'a, B>(IntoFrames<'a, B>);

impl<'a, B> Lent<'a, B> {
    /// Creates an iterator over the `frames` of a delivery.
    pub(super) const fn new(frames: IntoFrames<'a, B>) -> Self {
        Self(frames)
    }
}

impl<B: Default> Iterator for Lent<'_, B> {
    type Item = Frame<Buffer<B>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_bytes(Buffer::Lent))
    }
}

impl<B: Default> Frames<Buffer<B>> for Lent<'_, B> {
    #[inline]
    fn take_buffers(&mut self, count: usize, mut take: impl FnMut(Buffer<B>)) {
        self.0.take_buffers(count, |buffer| take(Buffer::Lent(buffer)));
    }
}
