//! The buffers of a source.

use rxo_frame::{Pool, PoolBuf};

/// A pool, and the buffer that the last frame did not keep: a frame that is consumed where it lies, and a look at an
/// empty ring, leave the pool alone.
#[derive(Debug)]
pub(crate) struct Buffers {
    pool: Pool,
    spare: Option<PoolBuf>,
}

impl Buffers {
    /// As many buffers of so many bytes. Allocates.
    pub(crate) fn new(buffers: usize, bytes_each: usize) -> Self {
        Self { pool: Pool::new(buffers, bytes_each), spare: None }
    }

    /// A buffer with its whole length; `None` if all are in use.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<PoolBuf> {
        self.spare.take().or_else(|| self.pool.take())
    }

    /// Takes back a buffer that is not needed after all.
    #[inline]
    pub(crate) fn put_back(&mut self, mut buffer: PoolBuf) {
        buffer.set_len(buffer.capacity());
        self.spare = Some(buffer);
    }

    /// Whether all are in use.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.spare.is_none() && self.pool.is_exhausted()
    }
}
