//! The trait for frames in order: frames are taken one by one, or only the buffers of many frames at once.
//!
//! An [`Iterator`] returns one element at a time, and must load and store its state for each element. An
//! implementation with frames in consecutive memory can return their buffers in one loop.

use alloc::vec;
use core::iter::Empty;

use crate::Frame;

/// Frames in order, taken one by one or several at once. `impl Frames<MyBuffer> for MyFrames {}` is enough, unless
/// taking many buffers at once is cheaper.
pub trait Frames<B>: Iterator<Item = Frame<B>> {
    /// Takes the next `count` frames, or all if there are fewer, and calls `take` with their buffers, in
    /// order.
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
