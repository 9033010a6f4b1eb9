//! What the memory of a frame is.

use alloc::sync::Arc;
use alloc::vec::Vec;

/// The memory of a frame: it lends the bytes, and dropping it gives the memory back to its owner.
///
/// `impl FrameBuffer for MyBuffer {}` is enough, unless several buffers can be given back for less than
/// the price of one each.
pub trait FrameBuffer: AsRef<[u8]> {
    /// Whether [`FrameBuffer::drop_all`] takes less time than dropping each buffer.
    const RETURN_TOGETHER: bool = false;

    /// Drops all `buffers`. Those of a [`Pool`](crate::Pool) return by one atomic exchange instead of one
    /// each. Does not allocate. An implementation takes every buffer of the iterator.
    #[inline]
    fn drop_all(buffers: impl Iterator<Item = Self>)
    where
        Self: Sized,
    {
        buffers.for_each(drop);
    }
}

impl FrameBuffer for &[u8] {}
impl FrameBuffer for Vec<u8> {}
impl FrameBuffer for Arc<[u8]> {}
