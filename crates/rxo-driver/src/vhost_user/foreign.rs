//! Foreign descriptors: decides which descriptors from another process are safe to use.
//!
//! A descriptor can refer to any object. Some objects block a process that queries their length or closes them:
//! an operation on a FUSE file waits for a process that the sender chooses. So only eventfds and files in memory
//! are accepted. System calls that reach no file system recognise these two kinds.
#![allow(unsafe_code, reason = "one system call")]

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::MOST_DESCRIPTORS;

/// Returns `true` if this process can use the descriptor without being blocked by its sender.
pub(super) fn is_harmless(file: BorrowedFd<'_>) -> bool {
    is_memory(file) || is_eventfd(file)
}

/// Returns `true` for a file in memory: a memfd, or a file on tmpfs or hugetlbfs. Only such files report
/// their seals, even if no seal can be added.
fn is_memory(file: BorrowedFd<'_>) -> bool {
    // SAFETY: the call takes only numbers.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) >= 0 }
}

/// Returns `true` for an eventfd, by the name that the kernel shows for it.
pub(crate) fn is_eventfd(file: BorrowedFd<'_>) -> bool {
    let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    name.is_ok_and(|name| name.as_os_str() == "anon_inode:[eventfd]")
}

/// Refused descriptors, which a separate thread closes because closing may block: a file on FUSE waits for
/// its process, a socket for its peer.
///
/// Each device has its own `Discards`, whose thread starts with the first refused descriptor. So the front end of
/// one device cannot delay the closing of descriptors that the front ends of other devices have sent. The device
/// accepts no connection while [too many](Self::are_too_many) descriptors are open, so the other side cannot use
/// up the descriptors of this process. All clones share one count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discards {
    open: Arc<AtomicUsize>,
    #[cfg(test)]
    seen: Arc<AtomicUsize>,
    /// The sender to the thread that closes descriptors, which ends when the last clone is dropped. `None` if
    /// the system could not start the thread.
    closer: Arc<OnceLock<Option<Sender<Vec<OwnedFd>>>>>,
}

/// The number of open descriptors at which the device accepts no more connections: the number of descriptors
/// that one message may carry.
const TOO_MANY: usize = MOST_DESCRIPTORS;

impl Discards {
    /// Returns `true` if the caller must wait until more descriptors are closed.
    pub(crate) fn are_too_many(&self) -> bool {
        self.open.load(Ordering::Relaxed) >= TOO_MANY
    }

    /// Returns the total number of descriptors that were passed to [`add`](Self::add).
    #[cfg(test)]
    pub(super) fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// Passes `files` to the separate thread, which closes them some time later.
    pub(super) fn add(&self, files: Vec<OwnedFd>) {
        self.open.fetch_add(files.len(), Ordering::Relaxed);
        #[cfg(test)]
        self.seen.fetch_add(files.len(), Ordering::Relaxed);
        let closer = self.closer.get_or_init(|| {
            let (sender, receiver) = channel::<Vec<OwnedFd>>();
            let open = Arc::clone(&self.open);
            let close = move || receiver.into_iter().for_each(|files| close(files, &open));
            let started = thread::Builder::new().name("rxo-closer".into()).spawn(close);
            started.ok().map(|_| sender)
        });
        // Without that thread, the files stay open until this process ends.
        match closer {
            Some(closer) => _ = closer.send(files),
            None => std::mem::forget(files),
        }
    }
}

fn close(files: Vec<OwnedFd>, open: &AtomicUsize) {
    for file in files {
        drop(file);
        open.fetch_sub(1, Ordering::Relaxed);
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
