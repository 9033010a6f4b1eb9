//! Memory: mappings shared with the kernel, accessed as words of rings and as bytes of frames.
//!
//! This module is separate because it contains all code that uses pointers to the memory of AF_XDP. Contract:
//! words are atomic, so every access to them is sound whatever the kernel writes. [`chunks`](super::chunks)
//! decides which code may access the bytes of a chunk.
#![allow(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::packet::ring::prefetch_two_lines;

/// A mapping, which is unmapped when it is dropped. Its bytes are zero at first.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread. Words are atomic; bytes are accessed only through unsafe
// functions, whose callers guarantee ownership.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes of a ring of `socket`.
    pub(super) fn of_ring(socket: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Self> {
        Self::new(bytes, libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), offset)
    }

    /// Maps `bytes` bytes of new, zeroed memory.
    pub(super) fn fresh(bytes: usize) -> io::Result<Self> {
        Self::new(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    fn new(bytes: usize, flags: libc::c_int, file: libc::c_int, offset: u64) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the call creates a mapping at an address that the kernel chooses; existing mappings stay.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, access, flags, file, offset as libc::off_t)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { start, bytes })
    }

    /// Returns the address of the mapping.
    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Returns the length of the mapping, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the 32-bit word at offset `at` in bytes, a multiple of four.
    #[inline]
    pub(super) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes, "a word beyond a ring");
        // SAFETY: the word is within the mapping, aligned, and lives as long as the mapping.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    /// Returns the 64-bit word at offset `at` in bytes, a multiple of eight.
    #[inline]
    pub(super) fn wide(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes, "an entry beyond a ring");
        // SAFETY: the word is within the mapping, aligned, and lives as long as the mapping.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    /// Returns the `len` bytes at offset `at`. Panics if they are not within the mapping.
    ///
    /// # Safety
    /// Neither other code nor the kernel may write to these bytes while the slice lives.
    #[inline]
    pub(super) unsafe fn slice(&self, at: usize, len: usize) -> &[u8] {
        assert!(at <= self.bytes && len <= self.bytes - at, "bytes beyond the chunks");
        // SAFETY: the bytes are within the mapping, and the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts(self.start.add(at).as_ptr(), len) }
    }

    /// Prefetches the two cache lines at offset `at`.
    #[inline]
    pub(super) fn prefetch(&self, at: usize) {
        prefetch_two_lines(self.start.as_ptr().wrapping_add(at));
    }

    /// Writes `bytes` at offset `at`. Panics if they do not fit.
    ///
    /// # Safety
    /// Neither other code nor the kernel may access the target bytes at the same time.
    #[inline]
    pub(super) unsafe fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.bytes && bytes.len() <= self.bytes - at, "bytes beyond the chunks");
        // SAFETY: the target is within the mapping, and the caller guarantees the rest.
        unsafe {
            let to = self.start.add(at).as_ptr();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, which has this length, and nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
