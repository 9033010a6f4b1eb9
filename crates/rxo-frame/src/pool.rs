//! A fixed pool of buffers. Any thread may take and return them.
//!
//! All memory is allocated in [`Pool::new`] and lives until the last handle and the last buffer are dropped.
//! Taking and returning a buffer is a pop or a push on a lock-free stack of indices: one atomic exchange,
//! which neither waits for another thread nor allocates. Buffers that are dropped together
//! ([`FrameBuffer::drop_all`]) return by a single exchange. The buffer that was returned last is taken first,
//! because it is probably still in the cache. On a processor without 64-bit atomics, a lock-free bit set
//! replaces the stack.
//!
//! The memory has no reference count for its buffers. The last handle closes the stack, and a closed stack
//! counts the buffers that return. The thread that returns the last one frees the memory.
//!
//! This is the only unsafe code of the crate. It is sound because an index is either on the stack or in
//! exactly one [`PoolBuf`], only that `PoolBuf` accesses the memory of the index, and the memory is freed only
//! when there are no handles and all indices are on the stack.
#![allow(unsafe_code, reason = "buffers that are owned one by one are cut from one allocation")]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::fmt;
use core::iter::repeat_with;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

use self::returning::Returning;
use self::stack::{Chain, IndexStack};
use crate::FrameBuffer;

#[cfg(any(test, not(target_has_atomic = "64")))]
mod bits;
mod returning;
#[cfg(target_has_atomic = "64")]
mod stack;
#[cfg(not(target_has_atomic = "64"))]
use self::bits as stack;
#[cfg(test)]
mod tests;

/// A fixed number of buffers of one size. Clones share the same buffers.
#[derive(Clone)]
pub struct Pool {
    handles: Arc<Handles>,
}

/// The state that all handles of a pool share. Dropped with the last handle; no buffer can be taken afterwards.
struct Handles {
    /// The memory of the pool. It is freed when this value is dropped, or when the last missing buffer returns later.
    shared: NonNull<Shared>,
}

struct Shared {
    /// The top of the stack of free buffers; see [`IndexStack`].
    top: stack::Top,
    /// The links between the free buffers; see [`IndexStack`].
    below: Box<[AtomicU32]>,
    memory: Box<[UnsafeCell<Line>]>,
    /// The distance between the starts of two buffers, in cache lines.
    stride_lines: usize,
    bytes_each: u32,
}

/// One cache line of the pool's memory. Two buffers never share a line, so threads with neighbouring buffers do
/// not slow each other. The bytes of a line are accessed through a pointer to the whole memory.
#[repr(align(64))]
struct Line {
    _bytes: [u8; LINE_BYTES],
}

const LINE_BYTES: usize = 64;

// SAFETY: `Handles` reaches the atomics and what never changes, and no bytes of buffers.
unsafe impl Send for Handles {}
// SAFETY: as above.
unsafe impl Sync for Handles {}
// SAFETY: no two buffers have the same index (see `IndexStack`), so no two threads reach the same
// bytes without passing the buffer on; what they share is atomic or never changes.
unsafe impl Send for PoolBuf {}
// SAFETY: as above; a shared buffer can only be read.
unsafe impl Sync for PoolBuf {}

impl Pool {
    /// Creates a pool of `buffers` zeroed buffers of `bytes_each` bytes. Only this function allocates.
    ///
    /// # Panics
    /// If either number is 2³² - 1 or more, if all buffers together exceed the largest possible
    /// allocation, or if there is no memory for them.
    #[must_use]
    pub fn new(buffers: usize, bytes_each: usize) -> Self {
        let count = u32::try_from(buffers).ok().filter(|count| *count < stack::END);
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
        let (top, below) = (stack::full_top(count), stack::full_below(count).collect());
        let shared = Box::new(Shared { top, below, memory, stride_lines, bytes_each });
        let shared = NonNull::from(Box::leak(shared));
        Self { handles: Arc::new(Handles { shared }) }
    }

    /// Takes a buffer of [`Pool::bytes_each`] bytes, which still contains the data of its last owner. `None` if
    /// no buffer is free. This call neither allocates nor waits.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<PoolBuf> {
        let shared = self.shared();
        let index = shared.free().pop()?;
        let start = shared.start(index);
        Some(PoolBuf { start, shared: self.handles.shared, index, length: shared.bytes_each })
    }

    /// Returns `true` if no buffer is free. Another thread may return one at any time afterwards.
    #[inline]
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.shared().free().is_empty()
    }

    /// Returns the number of free buffers. The cost is proportional to this number. The result is exact only
    /// while no other thread takes or returns buffers.
    #[must_use]
    pub fn available(&self) -> usize {
        self.shared().free().len()
    }

    /// Returns the size of each buffer of the pool, in bytes.
    #[must_use]
    pub fn bytes_each(&self) -> usize {
        self.shared().bytes_each as usize
    }

    #[inline]
    fn shared(&self) -> &Shared {
        // SAFETY: `Shared` lives until all handles are dropped, and nothing has mutable access.
        unsafe { self.handles.shared.as_ref() }
    }
}

impl Shared {
    #[inline]
    fn free(&self) -> IndexStack<'_> {
        IndexStack { top: &self.top, below: &self.below }
    }

    /// Returns the address of the first byte of the buffer `index`.
    #[inline]
    fn start(&self, index: u32) -> *mut u8 {
        let first = index as usize * self.stride_lines;
        // Derived from the whole slice of cells, so that the pointer may access all lines of the buffer. In
        // bounds, because there are `stride_lines` lines for every index.
        self.memory.as_ptr().wrapping_add(first).cast::<u8>().cast_mut()
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        let shared = self.shared.as_ptr();
        // SAFETY: the shared state lives at least until `close` has answered. Only atomics are borrowed,
        // because the last buffer may be dropped, and free it, while `close` returns. Nobody pops any more.
        let is_last =
            unsafe { IndexStack { top: &(*shared).top, below: &(*shared).below }.close() };
        if is_last {
            // SAFETY: `shared` comes from `Box::leak`; there are neither handles nor buffers.
            drop(unsafe { Box::from_raw(shared) });
        }
    }
}

/// Returns the distance between two buffers and the size of all buffers, both in cache lines; `None` if the
/// size exceeds `most_bytes`, the platform's largest allocation. Computes in 64 bits, because in 32 bits the
/// product could wrap around, and buffers would lie beyond the end of the memory.
fn lines(buffers: u32, bytes_each: u32, most_bytes: u64) -> Option<(usize, usize)> {
    // Odd, so that the first lines of the buffers, which contain the headers, spread over all sets of the
    // cache.
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

/// A buffer that was taken from a [`Pool`]. Dropping it returns it to the pool, from any thread.
///
/// The memory of the pool exists as long as any of its buffers, so a buffer may outlive the last [`Pool`]
/// handle.
pub struct PoolBuf {
    /// The address of the buffer's first byte. Stored here, so that reading a buffer does not access the pool.
    start: *mut u8,
    /// The pool's shared state. Valid until this buffer returns `index`. Dangling if the buffer belongs to no pool.
    shared: NonNull<Shared>,
    /// The index of the buffer in the pool; [`stack::END`] if the buffer belongs to no pool.
    index: u32,
    /// The current length of the buffer in bytes; at most `shared.bytes_each`.
    length: u32,
}

impl PoolBuf {
    /// Returns the capacity of the buffer in bytes; 0 for the default buffer, which belongs to no pool.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared().map_or(0, |shared| shared.bytes_each as usize)
    }

    /// Sets the length of the buffer to `bytes`. Added bytes contain the data of an earlier owner.
    ///
    /// # Panics
    /// If `bytes` is more than [`PoolBuf::capacity`].
    #[inline]
    pub fn set_len(&mut self, bytes: usize) {
        assert!(bytes <= self.capacity(), "a buffer of {} bytes: {bytes}", self.capacity());
        self.length = bytes as u32;
    }

    /// Shortens the buffer to at most `bytes` bytes.
    #[inline]
    pub fn truncate(&mut self, bytes: usize) {
        self.length = bytes.min(self.length as usize) as u32;
    }

    /// Returns `true` if the buffer belongs to no pool.
    #[inline]
    const fn is_nowhere(&self) -> bool {
        self.index == stack::END
    }

    #[inline]
    fn shared(&self) -> Option<&Shared> {
        if self.is_nowhere() {
            return None;
        }
        // SAFETY: the shared state is not freed before this buffer is dropped, and nothing has mutable
        // access.
        Some(unsafe { self.shared.as_ref() })
    }
}

impl Default for PoolBuf {
    /// Creates an empty buffer that belongs to no pool, as a placeholder for a buffer that was taken. Costs
    /// nothing.
    #[inline]
    fn default() -> Self {
        let start = NonNull::<u8>::dangling().as_ptr();
        Self { start, shared: NonNull::dangling(), index: stack::END, length: 0 }
    }
}

impl Deref for PoolBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `length` bytes from `start` lie inside the memory that `shared` keeps alive; they were
        // initialised when the memory was allocated, and belong to this value alone while it owns the index.
        // Without a pool, `length` is 0, and `start` is aligned and not null.
        unsafe { core::slice::from_raw_parts(self.start, self.length as usize) }
    }
}

impl DerefMut for PoolBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably for as long as the slice lives.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.length as usize) }
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
        if self.is_nowhere() {
            return;
        }
        // SAFETY: the index belongs to this buffer, which ends here.
        unsafe { release(self.shared, Chain::of(self.index)) };
    }
}

impl FrameBuffer for PoolBuf {
    const RETURN_TOGETHER: bool = true;

    #[inline]
    fn drop_all(mut buffers: impl Iterator<Item = Self>) {
        let mut next = buffers.next();
        while let Some(first) = next {
            next = match Returning::of(first) {
                Some(mut returning) => buffers.find_map(|buffer| returning.add(buffer)),
                None => buffers.next(),
            };
        }
    }
}

/// Returns the buffers of `chain` to their pool. If they are the last ones, and no handles exist, frees the memory of
/// the pool.
///
/// # Safety
/// The indices of `chain` must belong to the caller, which must not use them or `shared` afterwards.
#[inline]
unsafe fn release(shared: NonNull<Shared>, chain: Chain) {
    let shared = shared.as_ptr();
    // SAFETY: the shared state lives at least until `push` has returned the indices. Only atomics are
    // borrowed, because another thread may free the state while `push` returns.
    let is_last =
        unsafe { IndexStack { top: &(*shared).top, below: &(*shared).below }.push(chain) };
    if is_last {
        // SAFETY: `shared` comes from `Box::leak`; all handles and all other buffers are dropped.
        free(unsafe { Box::from_raw(shared) });
    }
}

/// Frees the memory of a pool. Not inlined, because it runs only for the last buffer of a pool.
#[cold]
fn free(shared: Box<Shared>) {
    drop(shared);
}

impl fmt::Debug for PoolBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolBuf({} bytes)", self.length)
    }
}
