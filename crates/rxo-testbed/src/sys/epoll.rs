//! Waits on many sockets with level-triggered epoll. A thread that reads a part of the data of each socket in
//! turn is notified again of the rest. Edge-triggered libraries would not repeat the notification.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::check;

/// The condition of a socket for which a thread waits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interest {
    /// The socket has bytes to read, or its stream has ended.
    Read,
    /// The socket has space to write.
    Write,
}

/// A set of sockets to wait on. The caller identifies each socket by a number, its token.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    /// Creates an empty set of sockets.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1 takes no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        check(fd)?;
        // SAFETY: the descriptor is new, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds a socket to the set. The socket must be removed from the set before the socket is closed, or be
    /// closed together with the set.
    pub(crate) fn add(&self, fd: &impl AsRawFd, token: u64, interest: Interest) -> io::Result<()> {
        let events = match interest {
            Interest::Read => libc::EPOLLIN,
            Interest::Write => libc::EPOLLOUT,
        };
        let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: token };
        let (set, fd) = (self.0.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: the kernel reads one event, which lives through the call.
        check(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, fd, &raw mut event) })
    }

    /// Removes a socket from the set.
    pub(crate) fn remove(&self, fd: &impl AsRawFd) -> io::Result<()> {
        let (set, fd) = (self.0.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: for removal the kernel does not read the event.
        check(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) })
    }

    /// Waits until a socket is ready or `timeout` has passed, and appends the tokens of the ready sockets to `ready`.
    pub(crate) fn wait(&self, ready: &mut Vec<u64>, timeout: Duration) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let pointer = events.as_mut_ptr();
        // SAFETY: the kernel writes at most 64 events into the array of 64.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), pointer, 64, milliseconds) };
        match check(count) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        let count = usize::try_from(count).unwrap_or(0);
        ready.extend(events.iter().take(count).map(|event| event.u64));
        Ok(())
    }
}
