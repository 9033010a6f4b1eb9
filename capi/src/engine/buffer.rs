//! A buffer that belongs to the program in C.

use std::ffi::c_void;
use std::ptr::null_mut;

use rxo_frame::FrameBuffer;

/// Bytes that the caller lent until `rxo_release`, and the caller's name for them. Dropping it does nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    bytes: &'static [u8],
    pub(super) cookie: *mut c_void,
}

impl Buffer {
    /// `bytes` live until the caller is given the cookie back, so the engine must not use them afterwards.
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
