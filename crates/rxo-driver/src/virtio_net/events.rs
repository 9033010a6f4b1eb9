//! Events: the descriptors on which one side of a virtio device waits, and its notifications to the other side.
//!
//! One epoll instance contains the control socket and the other side's notifications, so the worker waits on
//! one descriptor for any number of queues. A notification is reported once, and its eventfd is never read,
//! because an eventfd of the other side might block.
#![allow(unsafe_code, reason = "epoll takes pointers")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use crate::sys::check;
use crate::vhost_user::foreign::is_eventfd;

/// The kind of a watched descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A socket to which front ends connect. Each connection is reported once.
    Listener,
    /// A connected socket, which is reported until its data is read.
    Channel,
    /// An eventfd for notifications. Each is reported once.
    Notification,
}

/// The epoll instance with all watched descriptors.
#[derive(Debug)]
pub(crate) struct Events {
    epoll: OwnedFd,
}

/// A descriptor that is watched until this value is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    events: Arc<Events>,
    file: OwnedFd,
}

/// The descriptors that have become readable since the last call of [`Events::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingEvents {
    pub(crate) on_listener: bool,
    pub(crate) on_channel: bool,
    /// `true` if the other side has sent a notification. The notification is consumed, so the caller must
    /// check the rings now or later.
    pub(crate) is_notified: bool,
}

const MOST_EVENTS: usize = 16;

impl Events {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes only a number.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self { epoll: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Watches a duplicate of `file` for being readable. Fails if epoll cannot watch it.
    pub(crate) fn watch(
        self: &Arc<Self>,
        file: BorrowedFd<'_>,
        token: Token,
    ) -> io::Result<Watched> {
        let file = file.try_clone_to_owned()?;
        let once = if token == Token::Channel { 0 } else { libc::EPOLLET };
        let mut event =
            libc::epoll_event { events: (libc::EPOLLIN | once) as u32, u64: token as u64 };
        let (epoll, fd) = (self.epoll.as_raw_fd(), file.as_raw_fd());
        // SAFETY: the event is live; the kernel copies it.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) })?;
        Ok(Watched { events: Arc::clone(self), file })
    }

    /// Returns the events since the last call of this function, and clears them. Does not block.
    pub(crate) fn take(&self) -> PendingEvents {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST_EVENTS];
        let (epoll, most) = (self.epoll.as_raw_fd(), MOST_EVENTS as libc::c_int);
        // SAFETY: the kernel writes at most as many events as the live array has.
        let count = check(unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), most, 0) });
        // After an interruption by a signal, the next call returns the events.
        let count = count.unwrap_or_default().unsigned_abs() as usize;
        let has = |token: Token| events[..count].iter().any(|event| event.u64 == token as u64);
        PendingEvents {
            on_listener: has(Token::Listener),
            on_channel: has(Token::Channel),
            // If the array is full, a notification may be missing from it.
            is_notified: has(Token::Notification) || count == MOST_EVENTS,
        }
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let (epoll, fd) = (self.events.epoll.as_raw_fd(), self.file.as_raw_fd());
        // Closing the descriptor alone would not end the watch, because the other side has the same file
        // open.
        // SAFETY: the call takes numbers, and for this operation a null event.
        unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
    }
}

/// An eventfd by which this side notifies the other side.
#[derive(Debug)]
pub(crate) struct Notifier {
    file: File,
    /// `true` if a write to a full counter would block.
    may_block: bool,
}

impl Notifier {
    /// Creates a notifier that writes to a duplicate of the other side's eventfd. The flags of the eventfd
    /// stay unchanged, because the other side may want blocking reads.
    ///
    /// # Errors
    /// If the descriptor is not an eventfd.
    pub(crate) fn to(file: BorrowedFd<'_>) -> io::Result<Self> {
        if !is_eventfd(file) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a descriptor is no eventfd"));
        }
        let file = file.try_clone_to_owned()?;
        // SAFETY: the call takes only numbers.
        let flags = check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) })?;
        Ok(Self { may_block: flags & libc::O_NONBLOCK == 0, file: file.into() })
    }

    /// Creates a new, non-blocking eventfd.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
        // SAFETY: the call takes only numbers.
        let fd = check(unsafe { libc::eventfd(0, flags) })?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self { file: unsafe { OwnedFd::from_raw_fd(fd) }.into(), may_block: false })
    }

    /// Notifies the other side. Does nothing if the eventfd's counter is full, because the other side then
    /// has an unread notification.
    pub(crate) fn notify(&self) {
        if self.may_block && !self.has_room() {
            return;
        }
        let _full_or_gone = (&self.file).write(&1_u64.to_ne_bytes());
    }

    /// Forgets all notifications so far. Only for an eventfd of this side, which never blocks.
    pub(crate) fn forget(&self) {
        let _none = (&self.file).read(&mut [0; 8]);
    }

    fn has_room(&self) -> bool {
        let mut polled =
            libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: the argument is one live structure; the call does not wait.
        unsafe { libc::poll(&raw mut polled, 1, 0) == 1 }
    }
}

impl AsFd for Notifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::wait::wait_readable;

    fn is_ready(events: &Events) -> bool {
        !wait_readable(&[events.as_fd()], Some(Duration::ZERO)).unwrap().is_none()
    }

    #[test]
    fn a_notification_wakes_once_and_is_never_read() {
        let events = Arc::new(Events::new().unwrap());
        let notifier = Notifier::new().unwrap();
        let watched = events.watch(notifier.as_fd(), Token::Notification).unwrap();
        for _ in 0..3 {
            assert!(!is_ready(&events));
            notifier.notify();
            notifier.notify();
            assert!(is_ready(&events));
            let notified =
                PendingEvents { on_listener: false, on_channel: false, is_notified: true };
            assert_eq!(events.take(), notified);
        }
        drop(watched);
        notifier.notify();
        assert!(!is_ready(&events), "no longer watched, though the file is open elsewhere");
    }

    #[test]
    fn a_channel_is_ready_until_it_is_read() {
        let events = Arc::new(Events::new().unwrap());
        let (left, mut right) = UnixStream::pair().unwrap();
        let _watched = events.watch(left.as_fd(), Token::Channel).unwrap();
        right.write_all(b"x").unwrap();
        assert!(events.take().on_channel);
        assert!(events.take().on_channel);
    }

    #[test]
    fn what_cannot_be_waited_for_is_refused() {
        let events = Arc::new(Events::new().unwrap());
        let file = tempfile();
        assert!(events.watch(file.as_fd(), Token::Notification).is_err());
    }

    /// A front end may share an eventfd that blocks when its counter is full, because it wants blocking
    /// reads.
    #[test]
    fn a_full_counter_never_blocks_whatever_its_flags() {
        for flags in [0, libc::EFD_NONBLOCK] {
            // SAFETY: the call takes only numbers.
            let fd = check(unsafe { libc::eventfd(0, flags) }).unwrap();
            // SAFETY: the descriptor is new and has no other owner.
            let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
            let notifier = Notifier::to(file.as_fd()).unwrap();
            file.write_all(&(u64::MAX - 1).to_ne_bytes()).unwrap();
            notifier.notify();
            // SAFETY: the call takes only numbers.
            let now = check(unsafe { libc::fcntl(fd, libc::F_GETFL) }).unwrap();
            assert_eq!(now & libc::O_NONBLOCK, flags & libc::O_NONBLOCK, "left as it was");
        }
        assert!(Notifier::to(tempfile().as_fd()).is_err());
    }

    /// Opens a regular file, which epoll cannot watch.
    fn tempfile() -> File {
        File::open(std::env::current_exe().unwrap()).unwrap()
    }
}
