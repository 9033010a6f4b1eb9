//! What the system can wait for at an end of a device.
//!
//! It is a trait of its own because a device may have several descriptors or none, and because
//! middleware passes on those of the device that it wraps.

use std::os::fd::{AsFd, BorrowedFd};

/// An end of a device that can be waited for.
pub trait Descriptors {
    /// Calls `visit` with each descriptor that becomes readable when this source has something, or
    /// writable when this sink has room. The descriptors may change between two waits.
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>));
}

impl<E: Descriptors + ?Sized> Descriptors for Box<E> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        (**self).visit_descriptors(visit);
    }
}

/// One descriptor by itself, such as an alarm that is waited for beside a device.
impl Descriptors for BorrowedFd<'_> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.as_fd());
    }
}
