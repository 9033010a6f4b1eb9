//! Bell: wakes a thread of this process that waits on descriptors.
//!
//! A bell is an eventfd that only this process uses. Contract: ringing and silencing never block. A bell that was
//! rung is readable until it is silenced, however often it was rung.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rxo_device::Descriptors;

use crate::virtio_net::Notifier;

/// An eventfd that wakes the one thread that waits for it. Any thread may ring it.
#[derive(Debug)]
pub struct Bell(Notifier);

impl Bell {
    /// Creates a bell that has not been rung.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use rxo_driver::Bell;
    /// use rxo_driver::wait::{Interest, WaitList};
    ///
    /// let bell = Bell::new()?;
    /// let is_rung = || {
    ///     let mut list = WaitList::new();
    ///     list.add(Some(&bell), Interest::Readable);
    ///     list.wait(Some(Duration::ZERO)).map(|ready| !ready.is_none())
    /// };
    /// assert!(!is_rung()?);
    /// bell.ring();
    /// bell.ring();
    /// assert!(is_rung()?);
    /// bell.clear();
    /// assert!(!is_rung()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<Self> {
        Notifier::new().map(Self)
    }

    /// Wakes the thread that waits for the bell, now or the next time that it waits.
    pub fn ring(&self) {
        self.0.notify();
    }

    /// Makes the bell unreadable again: forgets all rings so far.
    pub fn clear(&self) {
        self.0.forget();
    }
}

impl Descriptors for Bell {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.0.as_fd());
    }
}
