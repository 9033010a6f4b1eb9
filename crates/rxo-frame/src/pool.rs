//! A fixed pool of buffers. Any thread may take and return them.
//!
//! All memory is allocated in [`Pool::new`] and lives until the pool and its last buffer are
//! dropped. Taking and returning a buffer is a pop or a push on a lock-free stack of indices, so
//! neither waits for another thread nor allocates. The buffer that was returned last is taken
//! first, because it is probably still in the cache.
//!
//! This is the only unsafe code of the crate. It is sound because an index is either on the stack
//! or in exactly one [`PoolBuf`], and only that `PoolBuf` touches the memory of the index.
#![allow(unsafe_code, reason = "buffers that are owned one by one are cut from one allocation")]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::fmt;
use core::iter::repeat_with;
use core::ops::{Deref, DerefMut};

use self::stack::IndexStack;

mod stack;
#[cfg(test)]
mod tests;

/// A fixed number of buffers of one size. Clones share the same buffers.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    memory: Box<[UnsafeCell<Line>]>,
    /// Indices of the free buffers.
    free: IndexStack,
    /// Distance between the starts of two buffers, in cache lines.
    stride_lines: usize,
    bytes_each: u32,
}

/// A cache line. Two buffers never share one, so threads that use neighbouring buffers do not
/// disturb each other. Its bytes are reached through a pointer to the whole memory.
#[repr(align(64))]
struct Line {
    _bytes: [u8; LINE_BYTES],
}

const LINE_BYTES: usize = 64;

// SAFETY: the memory is reached only through a `PoolBuf`, and no two of them have the same index
// (see `IndexStack`), so no two threads reach the same bytes without passing them on.
unsafe impl Send for Shared {}
// SAFETY: as above; everything else in it is atomic or never changes.
unsafe impl Sync for Shared {}

impl Pool {
    /// Makes a pool of `buffers` zeroed buffers of `bytes_each` bytes. This is the only function
    /// that allocates.
    ///
    /// # Panics
    /// If either number is 2³² - 1 or more, if all buffers together exceed the largest possible
    /// allocation, or if there is no memory for them.
    #[must_use]
    pub fn new(buffers: usize, bytes_each: usize) -> Self {
        let count = u32::try_from(buffers).ok().filter(|count| *count < u32::MAX);
        let each = u32::try_from(bytes_each).ok().filter(|bytes| *bytes < u32::MAX);
        let (Some(count), Some(bytes_each)) = (count, each) else {
            panic!(
                "a pool of {buffers} buffers of {bytes_each} bytes: both must be below 2^32 - 1"
            );
        };
        let Some((stride_lines, lines)) = lines(count, bytes_each, isize::MAX as u64) else {
            panic!(
                "a pool of {buffers} buffers of {bytes_each} bytes: no allocation can be so large"
            );
        };
        let zero = || UnsafeCell::new(Line { _bytes: [0; LINE_BYTES] });
        let memory = repeat_with(zero).take(lines).collect();
        let free = IndexStack::full(count);
        Self { shared: Arc::new(Shared { memory, free, stride_lines, bytes_each }) }
    }

    /// Takes a buffer of [`Pool::bytes_each`] bytes, which still holds what its last owner wrote.
    /// `None` if no buffer is free. Neither allocates nor waits.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<PoolBuf> {
        let index = self.shared.free.pop()?;
        Some(PoolBuf { shared: Arc::clone(&self.shared), index, length: self.shared.bytes_each })
    }

    /// Number of free buffers. Exact only while no other thread takes or returns buffers.
    #[must_use]
    pub fn available(&self) -> usize {
        self.shared.free.len()
    }

    /// The size of each buffer, in bytes.
    #[must_use]
    pub fn bytes_each(&self) -> usize {
        self.shared.bytes_each as usize
    }
}

/// Returns the distance between two buffers and the size of all buffers, both in cache lines;
/// `None` if all buffers exceed `most_bytes`, the platform's largest allocation. Computes in 64
/// bits, where nothing wraps. In 32 bits the product could wrap, and buffers would lie beyond the
/// end of the memory.
fn lines(buffers: u32, bytes_each: u32, most_bytes: u64) -> Option<(usize, usize)> {
    // Odd, so that the first lines of the buffers, which hold the headers, spread over all sets of
    // the cache.
    let stride = u64::from(bytes_each).div_ceil(LINE_BYTES as u64) | 1;
    let lines = stride.checked_mul(u64::from(buffers))?;
    lines.checked_mul(LINE_BYTES as u64).filter(|bytes| *bytes <= most_bytes)?;
    Some((usize::try_from(stride).ok()?, usize::try_from(lines).ok()?))
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} of {} bytes available)", self.available(), self.bytes_each())
    }
}

/// A buffer of a [`Pool`]. Dropping it returns it to the pool, from any thread.
///
/// It keeps the memory of the pool alive, so it may outlive the last [`Pool`] handle.
pub struct PoolBuf {
    shared: Arc<Shared>,
    index: u32,
    /// Never above `shared.bytes_each`.
    length: u32,
}

impl PoolBuf {
    /// Number of bytes that it can hold.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.bytes_each as usize
    }

    /// Sets its length to `bytes`. Bytes that this adds hold what an earlier owner wrote.
    ///
    /// # Panics
    /// If `bytes` is more than [`PoolBuf::capacity`].
    #[inline]
    pub fn set_len(&mut self, bytes: usize) {
        assert!(bytes <= self.capacity(), "a buffer of {} bytes: {bytes}", self.capacity());
        self.length = bytes as u32;
    }

    /// Shortens it to at most `bytes` bytes.
    #[inline]
    pub fn truncate(&mut self, bytes: usize) {
        self.length = bytes.min(self.length as usize) as u32;
    }

    #[inline]
    fn start(&self) -> *mut u8 {
        let first = self.index as usize * self.shared.stride_lines;
        // Derived from the whole slice of cells, so that the pointer may reach all lines of the
        // buffer. In bounds, because there are `stride_lines` lines for every index.
        self.shared.memory.as_ptr().wrapping_add(first).cast::<u8>().cast_mut()
    }
}

impl Deref for PoolBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `length` bytes from `start` lie inside the memory that `shared` keeps alive; they
        // were initialised when it was made, and belong to this value alone while it owns the
        // index.
        unsafe { core::slice::from_raw_parts(self.start(), self.length as usize) }
    }
}

impl DerefMut for PoolBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably for as long as the slice lives.
        unsafe { core::slice::from_raw_parts_mut(self.start(), self.length as usize) }
    }
}

impl AsRef<[u8]> for PoolBuf {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for PoolBuf {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl Drop for PoolBuf {
    #[inline]
    fn drop(&mut self) {
        self.shared.free.push(self.index);
    }
}

impl fmt::Debug for PoolBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolBuf({} bytes)", self.length)
    }
}
