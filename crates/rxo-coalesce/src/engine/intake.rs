//! Walking a batch with the headers of the frames ahead already on their way into the cache.

use alloc::vec::{Drain, Vec};

use rxo_frame::Frame;
use rxo_wire::arch;

/// How many frames ahead headers are asked for. Enough to hide a miss, few enough for the
/// processor's queue of outstanding lines.
const DISTANCE: usize = 32;
/// A header of 66 bytes (Ethernet, IPv4, TCP with timestamp) spans two lines wherever it starts.
const SECOND_LINE: usize = 64;

/// The frames of a batch, taken out one by one.
pub(super) struct Intake<'a, B> {
    frames: Drain<'a, Frame<B>>,
}

impl<'a, B: AsRef<[u8]>> Intake<'a, B> {
    #[inline]
    pub(super) fn new(batch: &'a mut Vec<Frame<B>>) -> Self {
        batch.iter().take(DISTANCE).for_each(prefetch_headers);
        Self { frames: batch.drain(..) }
    }

    /// The next frame, without taking it.
    #[inline]
    pub(super) fn peek(&self) -> Option<&Frame<B>> {
        self.frames.as_slice().first()
    }

    /// The frame after the next `skipped`, without taking it.
    #[inline]
    pub(super) fn peek_after(&self, skipped: usize) -> Option<&Frame<B>> {
        self.frames.as_slice().get(skipped)
    }

    /// Takes the next frame.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Frame<B>> {
        if let Some(ahead) = self.frames.as_slice().get(DISTANCE) {
            prefetch_headers(ahead);
        }
        self.frames.next()
    }
}

#[inline]
fn prefetch_headers<B: AsRef<[u8]>>(frame: &Frame<B>) {
    let bytes = frame.bytes();
    arch::prefetch(bytes, 0);
    arch::prefetch(bytes, SECOND_LINE);
}
