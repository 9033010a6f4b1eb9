//! Buffers of a source over rings.

use rxo_frame::{Pool, PoolBuf};

/// A pool of buffers, and one spare buffer. The spare buffer was taken from the pool but not needed, for example
/// because its frame was consumed. So neither frames that are consumed nor checks of an empty ring access the
/// pool.
#[derive(Debug)]
pub(crate) struct Buffers {
    pool: Pool,
    spare: Option<PoolBuf>,
}

impl Buffers {
    /// Creates `buffers` buffers of `bytes_each` bytes each. Allocates.
    pub(crate) fn new(buffers: usize, bytes_each: usize) -> Self {
        Self { pool: Pool::new(buffers, bytes_each), spare: None }
    }

    /// Takes a buffer with its whole length; `None` if all are in use.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<PoolBuf> {
        self.spare.take().or_else(|| self.pool.take())
    }

    /// Returns a buffer that was taken but not needed.
    #[inline]
    pub(crate) fn return_buffer(&mut self, mut buffer: PoolBuf) {
        buffer.set_len(buffer.capacity());
        self.spare = Some(buffer);
    }

    /// Returns `true` if all buffers are in use.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.spare.is_none() && self.pool.is_exhausted()
    }
}
