//! Which descriptors of another process may be used.
//!
//! A descriptor can stand for anything, and some things block whoever as much as asks for their length
//! or closes them: a file on FUSE waits for a process of the sender's choice. So only two kinds are
//! accepted, recognized by calls that reach no file system: eventfds, and files in memory.
#![allow(unsafe_code, reason = "one system call")]

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use super::MOST_DESCRIPTORS;

/// Whether a descriptor can be used without the danger that its owner blocks this process.
pub(super) fn is_harmless(file: BorrowedFd<'_>) -> bool {
    is_memory(file) || is_eventfd(file)
}

/// Whether it is a file in memory: a memfd, or a file on tmpfs or hugetlbfs. Only these have seals, even if
/// none can be added.
fn is_memory(file: BorrowedFd<'_>) -> bool {
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) >= 0 }
}

/// Whether it is an eventfd, by the name that the kernel gives it.
pub(crate) fn is_eventfd(file: BorrowedFd<'_>) -> bool {
    let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    name.is_ok_and(|name| name.as_os_str() == "anon_inode:[eventfd]")
}

/// Descriptors that a thread of its own closes, because closing may block, too: a file on FUSE waits for its
/// process, a socket for its peer.
///
/// A device has one and makes no connection while [too many](Self::are_too_many) are open. So the other side
/// cannot use up the descriptors of this process. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discards {
    open: Arc<AtomicUsize>,
}

/// The most open descriptors with which a connection is made, plus one: as many as one message carries.
const TOO_MANY: usize = MOST_DESCRIPTORS;

impl Discards {
    /// Whether to wait until more are closed.
    pub(crate) fn are_too_many(&self) -> bool {
        self.open.load(Ordering::Relaxed) >= TOO_MANY
    }

    /// Closes `files` some time later.
    pub(super) fn add(&self, files: Vec<OwnedFd>) {
        type Closer = Mutex<Sender<(Vec<OwnedFd>, Discards)>>;
        static CLOSER: OnceLock<Option<Closer>> = OnceLock::new();
        self.open.fetch_add(files.len(), Ordering::Relaxed);
        let closer = CLOSER.get_or_init(|| {
            let (sender, receiver) = channel::<(Vec<OwnedFd>, Self)>();
            let close = move || receiver.into_iter().for_each(|(files, count)| count.close(files));
            let started = thread::Builder::new().name("rxo-closer".into()).spawn(close);
            started.ok().map(|_| Mutex::new(sender))
        });
        // Without a thread they stay open until this process ends.
        match closer {
            Some(closer) => {
                let files = (files, self.clone());
                _ = closer.lock().unwrap_or_else(PoisonError::into_inner).send(files);
            }
            None => std::mem::forget(files),
        }
    }

    fn close(&self, files: Vec<OwnedFd>) {
        for file in files {
            drop(file);
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::virtio_net::Notifier;
    use crate::virtio_net::mapping::memory_file;

    #[test]
    fn only_memory_and_events_are_harmless() {
        let memory = memory_file(4_096).unwrap();
        let event = Notifier::new().unwrap();
        assert!(is_harmless(memory.as_fd()) && is_harmless(event.as_fd()));
        assert!(is_eventfd(event.as_fd()) && !is_eventfd(memory.as_fd()));
        let (socket, _) = UnixStream::pair().unwrap();
        let (pipe, _) = std::io::pipe().unwrap();
        let null = File::open("/dev/null").unwrap();
        let regular = File::open(std::env::current_exe().unwrap()).unwrap();
        for other in [socket.as_fd(), pipe.as_fd(), null.as_fd(), regular.as_fd()] {
            assert!(!is_harmless(other));
        }
    }
}
