//! Frames in order, which are taken one by one, or many at once for their buffers.
//!
//! Separate from [`Iterator`] because an iterator is asked for each element, and what it knows of the next ones is
//! loaded and stored each time. Whoever has frames side by side hands out their buffers in one loop.

use alloc::vec;
use core::iter::Empty;

use crate::Frame;

/// Frames in order. `impl Frames<MyBuffer> for MyFrames {}` is enough, unless many buffers cost less at once.
pub trait Frames<B>: Iterator<Item = Frame<B>> {
    /// Takes the next `count` frames, or all if there are fewer, and gives their buffers to `take`, in order.
    #[inline]
    fn take_buffers(&mut self, count: usize, mut take: impl FnMut(B))
    where
        Self: Sized,
    {
        self.by_ref().take(count).for_each(|frame| take(frame.bytes));
    }
}

impl<B> Frames<B> for Empty<Frame<B>> {}
impl<B> Frames<B> for vec::IntoIter<Frame<B>> {}
