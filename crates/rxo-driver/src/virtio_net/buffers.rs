//! Buffers of a source over rings.

use rxo_frame::{Pool, PoolBuf};

/// A pool of buffers, and the buffer for the next frame, which stays here until its frame is given away. So
/// neither frames that are consumed nor checks of an empty ring access the pool.
#[derive(Debug)]
pub(crate) struct Buffers {
    pool: Pool,
    /// Has its whole length.
    next: Option<PoolBuf>,
}

impl Buffers {
    /// Creates `buffers` buffers of `bytes_each` bytes each. Allocates.
    pub(crate) fn new(buffers: usize, bytes_each: usize) -> Self {
        Self { pool: Pool::new(buffers, bytes_each), next: None }
    }

    /// Returns the buffer for the next frame, with its whole length; `None` if all are in use.
    #[inline(always)]
    pub(crate) fn room(&mut self) -> Option<&mut PoolBuf> {
        if self.next.is_none() {
            self.refill();
        }
        self.next.as_mut()
    }

    #[inline(never)]
    fn refill(&mut self) {
        self.next = self.pool.take();
    }

    /// Returns the buffer that [`Buffers::room`] has returned; it is empty if there is none.
    #[inline]
    pub(crate) fn content(&self) -> &[u8] {
        self.next.as_deref().unwrap_or_default()
    }

    /// Takes the buffer that [`Buffers::room`] has returned; it is empty if there is none.
    #[inline]
    pub(crate) fn take(&mut self) -> PoolBuf {
        self.next.take().unwrap_or_default()
    }

    /// Makes `buffer`, which was taken with its whole length, the buffer for the next frame.
    pub(crate) fn put_back(&mut self, buffer: PoolBuf) {
        self.next = Some(buffer);
    }

    /// Returns `true` if all buffers are in use.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.next.is_none() && self.pool.is_exhausted()
    }
}
