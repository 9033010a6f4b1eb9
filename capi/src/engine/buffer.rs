//! The buffer of a frame that belongs to the calling C program.

use std::ffi::c_void;
use std::ptr::null_mut;

use rxo_frame::FrameBuffer;

/// The bytes of a frame, which belong to the caller until `rxo_release` returns them, and the caller's cookie
/// for them. Dropping the value does nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    bytes: &'static [u8],
    pub(super) cookie: *mut c_void,
}

impl Buffer {
    /// Wraps `bytes`, which are valid until the caller gets the cookie back; the engine must not use them
    /// after that.
    pub(super) const fn new(bytes: &'static [u8], cookie: *mut c_void) -> Self {
        Self { bytes, cookie }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self { bytes: &[], cookie: null_mut() }
    }
}

impl AsRef<[u8]> for Buffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl FrameBuffer for Buffer {}
