//! The trait for the memory of a frame.

use alloc::sync::Arc;
use alloc::vec::Vec;

/// The memory of a frame: it provides the bytes, and dropping it returns the memory to its owner.
///
/// `impl FrameBuffer for MyBuffer {}` is enough, unless returning several buffers at once is cheaper than
/// returning them one by one.
pub trait FrameBuffer: AsRef<[u8]> {
    /// `true` if [`FrameBuffer::drop_all`] is faster than dropping each buffer.
    const RETURN_TOGETHER: bool = false;

    /// Drops all `buffers`. A [`Pool`](crate::Pool) gets all its buffers back by a single atomic exchange. Does
    /// not allocate. An implementation must consume the whole iterator.
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
#[cfg(feature = "bytes")]
impl FrameBuffer for bytes::Bytes {}
#[cfg(feature = "bytes")]
impl FrameBuffer for bytes::BytesMut {}
