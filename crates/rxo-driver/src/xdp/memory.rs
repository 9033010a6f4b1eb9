//! Memory: mappings that are shared with the kernel, as words of rings and as bytes of frames.
//!
//! This module is separate because it is the only one of AF_XDP with pointers. Contract: words are atomic, so every access
//! to them is sound whatever the kernel writes. Who may touch the bytes of a chunk is decided by [`chunks`](super::chunks).
#![allow(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::packet::ring::prefetch_two_lines;

/// A mapping, unmapped when it is dropped. Its bytes begin as zeros.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread. Words are atomic; bytes are reached through unsafe functions only, whose
// callers say who owns them.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes of a ring of `socket`.
    pub(super) fn of_ring(socket: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Self> {
        Self::new(bytes, libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), offset)
    }

    /// Maps `bytes` bytes of fresh memory.
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

    /// Returns the length in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the word of four bytes at offset `at`, a multiple of four.
    #[inline]
    pub(super) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes, "a word beyond a ring");
        // SAFETY: the word is within the mapping and aligned, and lives as long as it.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    /// Returns the word of eight bytes at offset `at`, a multiple of eight.
    #[inline]
    pub(super) fn wide(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes, "an entry beyond a ring");
        // SAFETY: the word is within the mapping and aligned, and lives as long as it.
        unsafe { self.start.add(at).cast().as_ref() }
    }

    /// Returns the `len` bytes at offset `at`. Panics if they are not within the mapping.
    ///
    /// # Safety
    /// Nobody may write to them while the slice lives.
    #[inline]
    pub(super) unsafe fn slice(&self, at: usize, len: usize) -> &[u8] {
        assert!(at <= self.bytes && len <= self.bytes - at, "bytes beyond the chunks");
        // SAFETY: the bytes are within the mapping, and the caller promises the rest.
        unsafe { std::slice::from_raw_parts(self.start.add(at).as_ptr(), len) }
    }

    /// Prefetches two cache lines at offset `at`.
    #[inline]
    pub(super) fn prefetch(&self, at: usize) {
        prefetch_two_lines(self.start.as_ptr().wrapping_add(at));
    }

    /// Writes `bytes` at offset `at`. Panics if they do not fit.
    ///
    /// # Safety
    /// Nobody else may access them meanwhile.
    #[inline]
    pub(super) unsafe fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.bytes && bytes.len() <= self.bytes - at, "bytes beyond the chunks");
        // SAFETY: the target is within the mapping, and the caller promises the rest.
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
