//! File descriptors on which the system can wait for a source or sink.
//!
//! The trait is separate because a device may have several descriptors or none, and because middleware passes
//! on the descriptors of the device that it wraps.

use std::os::fd::{AsFd, BorrowedFd};

/// A source or sink with file descriptors to wait for.
pub trait Descriptors {
    /// Calls `visit` with each descriptor that becomes readable when this source has a frame, or writable
    /// when this sink can accept a packet. The descriptors may change between two waits.
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>));
}

impl<E: Descriptors + ?Sized> Descriptors for Box<E> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        (**self).visit_descriptors(visit);
    }
}

/// A single descriptor, such as that of a timer. With this implementation, a caller can wait for a timer and a
/// device in one call.
impl Descriptors for BorrowedFd<'_> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.as_fd());
    }
}
