//! The buffer of a frame that belongs to the calling C program.

use std::ffi::c_void;
use std::slice;

use rxo_frame::FrameBuffer;

/// The bytes of a frame, which belong to the caller until `rxo_release` returns them, and the caller's cookie
/// for them. Dropping the value does nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    data: *const u8,
    len: usize,
    pub(super) cookie: *mut c_void,
}

impl Buffer {
    /// Wraps `len` bytes at `data`.
    ///
    /// # Safety
    /// Before the first use of the value as bytes, the caller checks that `data` is not null and `len` at most
    /// `isize::MAX`; the bytes are readable until the program gets the cookie back, and not used after that.
    pub(super) const unsafe fn new(data: *const u8, len: usize, cookie: *mut c_void) -> Self {
        Self { data, len, cookie }
    }
}

impl AsRef<[u8]> for Buffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the promise of `new`.
        unsafe { slice::from_raw_parts(self.data, self.len) }
    }
}

impl FrameBuffer for Buffer {}
