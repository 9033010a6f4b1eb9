//! Heartbeat: a counter in shared memory, by which one process of a run detects whether another process of the
//! run still works (heartbeat).
//!
//! This module is separate because no other module maps memory that the processes of a run share. Contract:
//! the memory stays mapped as long as the process lives.
#![allow(unsafe_code, reason = "memory that processes share is mapped by a pointer")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::sys::check;

/// The counter that a worker increments in each turn of its loop. A process that is forked later shares the
/// counter. Copies of this value refer to the same counter.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat {
    page: &'static Page,
    /// The memory file, which can be sent to a process that was not forked from this one. `None` if only forked
    /// processes can share the memory.
    file: Option<&'static OwnedFd>,
}

#[derive(Debug)]
#[repr(C)]
struct Page {
    turns: AtomicU64,
    /// The current [`Duty`], encoded as an integer.
    duty: AtomicU8,
}

/// The process that must currently show that it works, because the host depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// No process has to show that it works, because nothing is changed on the interfaces.
    None,
    /// The worker must show that it works, by counting its turns.
    Worker,
    /// The keeper must show that it works, because it is changing or restoring the interfaces.
    Keeper,
}

impl Heartbeat {
    /// Creates a heartbeat in memory that processes forked later share. The memory is never unmapped.
    ///
    /// # Errors
    /// If the system has no memory left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { page: map(libc::MAP_ANONYMOUS, -1)?, file: None })
    }

    /// Creates a heartbeat whose memory can also be sent to a process that was not forked from this one. The
    /// memory is a file, and a limit on the size of files (`RLIMIT_FSIZE`) may forbid it.
    ///
    /// # Errors
    /// If the system has no memory left, or permits no file.
    pub fn to_be_sent() -> io::Result<Self> {
        // SAFETY: the name is a C string.
        let file = check(unsafe { libc::memfd_create(c"rxo-pulse".as_ptr(), libc::MFD_CLOEXEC) })?;
        // SAFETY: the descriptor is new and has no other owner.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(file) });
        file.set_len(size_of::<Page>() as u64)?;
        Self::inherit(file.into())
    }

    /// Maps the memory of a heartbeat that another process has created and sent.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn inherit(file: OwnedFd) -> io::Result<Self> {
        Ok(Self { page: map(0, file.as_raw_fd())?, file: Some(Box::leak(Box::new(file))) })
    }

    /// Returns the file of the memory, to be sent to another process; `None` if only forked processes share
    /// the memory.
    pub(crate) fn file(self) -> Option<BorrowedFd<'static>> {
        self.file.map(AsFd::as_fd)
    }

    /// Returns the counter that the worker increments in each turn.
    #[must_use]
    pub const fn turns(self) -> &'static AtomicU64 {
        &self.page.turns
    }

    /// Returns the current count of the worker's turns.
    pub(crate) fn count(self) -> u64 {
        self.page.turns.load(Ordering::Relaxed)
    }

    /// Sets the process that must show from now on that it works, because the host depends on it.
    pub(crate) fn set_duty(self, duty: Duty) {
        self.page.duty.store(duty as u8, Ordering::Relaxed);
    }

    /// Returns the process that must show that it works now.
    pub(crate) fn duty(self) -> Duty {
        match self.page.duty.load(Ordering::Relaxed) {
            1 => Duty::Worker,
            2 => Duty::Keeper,
            _ => Duty::None,
        }
    }
}

/// Maps a page of the file `fd`, or of anonymous memory if `kind` is `MAP_ANONYMOUS`.
fn map(kind: i32, fd: RawFd) -> io::Result<&'static Page> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | kind);
    // SAFETY: the call creates a mapping of one page, at an address that the kernel chooses.
    let page = unsafe { libc::mmap(null_mut(), size_of::<Page>(), access, kind, fd, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the page is zeroed at first, aligned, never unmapped, and only read and written by atomic
    // operations. Only processes of this run have the file, and its length never changes.
    Ok(unsafe { &*page.cast::<Page>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duty_is_read_as_it_was_written() {
        assert!(Heartbeat::new().unwrap().file().is_none());
        let heartbeat = Heartbeat::to_be_sent().unwrap();
        let other = heartbeat.file().unwrap().try_clone_to_owned().unwrap();
        let other = Heartbeat::inherit(other).unwrap();
        assert_eq!((heartbeat.duty(), heartbeat.count()), (Duty::None, 0));
        for duty in [Duty::Worker, Duty::Keeper, Duty::None] {
            heartbeat.set_duty(duty);
            assert_eq!((heartbeat.duty(), other.duty()), (duty, duty));
        }
    }
}
