//! Mapped memory that another program can change at any time, and every access to it.
//!
//! Contract: each access is checked against the length of the mapping. No reference to plain bytes is ever
//! created: words are atomics, and longer data is copied between raw pointers. A copy may be torn, so callers
//! must accept any bytes.
#![allow(unsafe_code, reason = "memory shared with another program")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// The alignment of a mapping from [`Mapping::zeroed`], in bytes.
const PAGE_BYTES: usize = 4_096;

/// A mapping: memory that stays mapped during the lifetime of this value.
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// The owner of the memory, which unmaps it when this value is dropped.
    _owner: Box<dyn Send + Sync>,
}

impl Mapping {
    /// Creates a mapping of `bytes` bytes at `start`. Dropping the mapping drops `owner`, which may then
    /// unmap the memory.
    ///
    /// # Safety
    /// Until `owner` is dropped, all `bytes` at `start` must stay readable and writable, and this process must
    /// access them only through this mapping or as other programs would: through raw pointers and atomics. A
    /// mapped file must not shrink, because an access beyond its end ends the process. A memory file can be
    /// sealed against shrinking.
    #[must_use]
    pub unsafe fn from_raw(start: NonNull<u8>, bytes: usize, owner: Box<dyn Send + Sync>) -> Self {
        Self { start, bytes, _owner: owner }
    }

    /// Creates a mapping of `bytes` zeros in this process's own memory, aligned to 4 KiB. Allocates.
    #[must_use]
    pub fn zeroed(bytes: usize) -> Self {
        let heap = Heap::zeroed(bytes);
        Self { start: heap.start, bytes, _owner: Box::new(heap) }
    }

    /// Returns the length of the mapping, in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Returns `true` if the length of the mapping is 0.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies from `offset` to all of `to`. Returns `false` and copies nothing if the range exceeds the
    /// mapping.
    #[inline]
    #[must_use]
    pub(super) fn read(&self, offset: usize, to: &mut [u8]) -> bool {
        let Some(from) = self.at(offset, to.len()) else { return false };
        // SAFETY: `at` checked the range; `to` is private memory, which no mapping overlaps. Any byte
        // is valid, so it does not matter if the other program writes meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
        true
    }

    /// Copies all of `from` to `offset`. Returns `false` and copies nothing if the range exceeds the mapping.
    #[inline]
    #[must_use]
    pub(super) fn write(&self, offset: usize, from: &[u8]) -> bool {
        let Some(to) = self.at(offset, from.len()) else { return false };
        // SAFETY: `at` checked the range; `from` is private memory, which no mapping overlaps.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), from.len()) };
        true
    }

    /// Sets `bits` in the byte at `offset`. All earlier writes of this thread are visible to any program that
    /// sees the bits. Returns `false` and sets nothing if the byte is beyond the mapping.
    pub(super) fn set_bits(&self, offset: usize, bits: u8) -> bool {
        let Some(byte) = self.at(offset, 1) else { return false };
        // SAFETY: the byte is inside the mapping and needs no alignment; only atomics access this mapping.
        let byte = unsafe { AtomicU8::from_ptr(byte.as_ptr()) };
        // Always an exchange: a plain load that finds the bits set could pass the writes before it, and the other
        // program would take the bits before it can see these writes.
        byte.fetch_or(bits, Ordering::SeqCst);
        true
    }

    /// Returns the `bytes` bytes at `offset` as a [`Room`], through which they can be written; `None` if they
    /// exceed the mapping.
    #[inline]
    pub(super) fn room(&self, offset: usize, bytes: usize) -> Option<Room<'_>> {
        Some(Room { start: self.at(offset, bytes)?, bytes, mapping: PhantomData })
    }

    /// Returns the address in this process of the `bytes` bytes at `offset`; `None` if they exceed the mapping.
    #[inline]
    fn at(&self, offset: usize, bytes: usize) -> Option<NonNull<u8>> {
        if offset > self.bytes || bytes > self.bytes - offset {
            return None;
        }
        // SAFETY: `offset` is within the mapping, by the check above.
        Some(unsafe { self.start.add(offset) })
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

// SAFETY: the memory belongs to no thread, and every access is atomic or a copy by raw pointers that
// accepts any bytes; the owner is `Send`.
unsafe impl Send for Mapping {}
// SAFETY: as above; the owner is `Sync` and never used.
unsafe impl Sync for Mapping {}

/// A part of a mapping that is written from its start. The range is checked once, so that each write of a
/// piece only checks the remaining length.
#[derive(Debug)]
pub(crate) struct Room<'m> {
    start: NonNull<u8>,
    /// The length of the part that was not written yet, in bytes.
    bytes: usize,
    mapping: PhantomData<&'m Mapping>,
}

impl Room<'_> {
    /// A part of a mapping with length 0.
    pub(crate) const NONE: Self =
        Self { start: NonNull::dangling(), bytes: 0, mapping: PhantomData };

    /// Returns `true` if the whole part was written.
    #[inline(always)]
    pub(crate) const fn is_full(&self) -> bool {
        self.bytes == 0
    }

    /// Copies as much of `from` as fits, after the bytes copied before. Returns the rest of `from`.
    #[inline(always)]
    pub(crate) const fn fill<'f>(&mut self, from: &'f [u8]) -> &'f [u8] {
        let bytes = if from.len() < self.bytes { from.len() } else { self.bytes };
        let (now, later) = from.split_at(bytes);
        // SAFETY: `bytes` bytes are left in the mapping at `start`, which `Mapping::room` checked, and the
        // borrow keeps the mapping. `from` is private memory, which no mapping overlaps.
        self.start = unsafe {
            std::ptr::copy_nonoverlapping(now.as_ptr(), self.start.as_ptr(), bytes);
            self.start.add(bytes)
        };
        self.bytes -= bytes;
        later
    }
}

/// Memory from the allocator, initially zero: the owner of a mapping from [`Mapping::zeroed`].
struct Heap {
    start: NonNull<u8>,
    layout: Layout,
}

impl Heap {
    fn zeroed(bytes: usize) -> Self {
        let Ok(layout) = Layout::from_size_align(bytes.max(1), PAGE_BYTES) else {
            handle_alloc_error(Layout::new::<u8>())
        };
        // SAFETY: the layout has at least one byte.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, layout }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and the mapping that used it is dropped.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

// SAFETY: the value owns its allocation; the pointer is only used to free it.
unsafe impl Send for Heap {}
// SAFETY: as above; nothing is accessible through a shared reference.
unsafe impl Sync for Heap {}

/// A part of a mapping that is accessed as atomic words, as rings are. The mapping exists as long as this
/// value.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    start: NonNull<u8>,
    bytes: usize,
    _mapping: Arc<Mapping>,
}

impl Words {
    /// Creates the words for the `bytes` bytes at `offset`; `None` if they exceed the mapping, or their
    /// address in this process is not a multiple of `alignment`.
    pub(super) fn new(
        mapping: &Arc<Mapping>,
        offset: usize,
        bytes: usize,
        alignment: usize,
    ) -> Option<Self> {
        let start = mapping.at(offset, bytes)?;
        let is_aligned = start.addr().get().is_multiple_of(alignment);
        is_aligned.then(|| Self { start, bytes, _mapping: Arc::clone(mapping) })
    }

    /// Creates the words for the `bytes` bytes at `offset`, for a mapping without regions. Returns `None` in
    /// the same cases as [`Words::new`].
    pub(crate) fn whole(
        mapping: &Arc<Mapping>,
        offset: usize,
        bytes: usize,
        alignment: usize,
    ) -> Option<Self> {
        Self::new(mapping, offset, bytes, alignment)
    }

    /// Returns the 16-bit word at `offset`.
    ///
    /// # Panics
    /// If the word is outside the part or unaligned: this is a bug of this crate, never caused by the other
    /// side.
    #[inline]
    pub(crate) fn half(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: `word` checked range and alignment; only atomics access rings.
        unsafe { self.word::<AtomicU16>(offset).as_ref() }
    }

    /// Returns the 32-bit word at `offset`. Panics if the word is outside the part or unaligned.
    #[inline]
    pub(crate) fn word32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `word` checked range and alignment; only atomics access rings.
        unsafe { self.word::<AtomicU32>(offset).as_ref() }
    }

    /// Returns the 64-bit word at `offset`. Panics if the word is outside the part or unaligned.
    #[inline]
    pub(crate) fn word64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `word` checked range and alignment; only atomics access rings.
        unsafe { self.word::<AtomicU64>(offset).as_ref() }
    }

    #[inline]
    fn word<T>(&self, offset: usize) -> NonNull<T> {
        assert!(offset < self.bytes && size_of::<T>() <= self.bytes - offset, "outside the ring");
        // SAFETY: the word is inside the mapping, by the check above.
        let word = unsafe { self.start.add(offset) }.cast::<T>();
        assert!(word.is_aligned(), "between two words of the ring");
        word
    }
}

// SAFETY: only atomics are accessible, in memory that belongs to no thread and that the mapping keeps.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}
