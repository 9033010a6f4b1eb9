//! Many writes in one system call, through io_uring.
//!
//! It does not make a write cheaper; it keeps the reader that a write has woken from taking the
//! processor between two writes.
//!
//! Contract: the writes of a batch are linked, so they are carried out in order, and none after
//! one that failed. When `write` returns, the kernel is done with every piece. Should the queue
//! itself fail, it is not used again, and writes go one by one.
#![allow(unsafe_code, reason = "the submission queue takes pointers")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use io_uring::squeue::{Entry, Flags};
use io_uring::{IoUring, opcode, types};

use crate::transmit::batch::Sealed;
use crate::transmit::{Writer, Writev, Written};

/// The most writes of one submission.
const ENTRIES: u32 = 128;

/// The place of our descriptor in the ring's own table.
const FILE: types::Fixed = types::Fixed(0);

/// A submission queue for one file.
pub(crate) struct Uring<F> {
    ring: IoUring,
    /// To wait on, and to write with once the queue has failed.
    singly: Writev<F>,
    has_failed: bool,
    /// The result of each write of the submission under way.
    results: Vec<i32>,
}

impl<F: AsFd> Uring<F> {
    /// Sets up the queue; fails where the system has none, or forbids it.
    pub(crate) fn new(file: Arc<F>) -> io::Result<Self> {
        let ring = deferred().or_else(|_older_kernel| IoUring::new(ENTRIES))?;
        ring.submitter().register_files(&[file.as_fd().as_raw_fd()])?;
        let results = Vec::with_capacity(ENTRIES as usize);
        Ok(Self { ring, singly: Writev::new(file), has_failed: false, results })
    }

    /// Queues the writes; returns how many there was room for.
    fn queue(&mut self, batch: &Sealed<'_, '_>, from: usize) -> usize {
        let count = (batch.list().len() - from).min(ENTRIES as usize);
        let mut queue = self.ring.submission();
        for n in 0..count {
            let pieces = batch.pieces(from + n);
            let entry = write_entry(pieces, n as u64, n + 1 < count);
            // SAFETY: the pieces are live while the batch is, and `write` does not return before
            // the kernel has completed every entry that it has taken.
            let pushed = unsafe { queue.push(&entry) };
            debug_assert!(pushed.is_ok(), "the queue is emptied by every submission");
        }
        count
    }

    /// Submits what is queued, and waits until all of it is done. Returns the system calls made.
    fn complete(&mut self, count: usize) -> u64 {
        self.results.clear();
        self.results.resize(count, -libc::ECANCELED);
        let (mut done, mut submissions) = (0, 0);
        while done < count && !self.has_failed {
            submissions += 1;
            let result = self.ring.submit_and_wait(count - done);
            self.has_failed = result.is_err_and(|error| !is_passing(&error));
            for entry in self.ring.completion() {
                self.results[entry.user_data() as usize] = entry.result();
                done += 1;
            }
        }
        submissions
    }
}

impl<F: AsFd> Writer for Uring<F> {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        if self.has_failed {
            return self.singly.write(batch, from);
        }
        let count = self.queue(batch, from);
        let submissions = self.complete(count);
        let sent = self.results.iter().take_while(|&&result| result >= 0).count();
        let refused = match self.results.get(sent) {
            None => None,
            // Not the packet's fault, but the queue's: the next call writes it.
            Some(_) if self.has_failed => Some(libc::EINTR),
            Some(code) => Some(-code),
        };
        Written { sent, submissions, refused: refused.map(io::Error::from_raw_os_error) }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.singly.descriptor()
    }
}

impl<F> Drop for Uring<F> {
    fn drop(&mut self) {
        // The kernel takes a ring down in its own time. The file must not wait for that: an
        // interface would outlive its last user, and its name stay taken.
        let _ring_gone_anyway = self.ring.submitter().unregister_files();
    }
}

impl<F> std::fmt::Debug for Uring<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").finish_non_exhaustive()
    }
}

fn write_entry(pieces: &[libc::iovec], number: u64, more_follow: bool) -> Entry {
    let entry =
        opcode::Writev::new(FILE, pieces.as_ptr(), pieces.len() as u32).build().user_data(number);
    if more_follow { entry.flags(Flags::IO_LINK) } else { entry }
}

/// A queue whose links are followed by the thread that waits, inside that very call: then a link
/// costs nothing (otherwise about 100 ns). Only the thread that made it may submit.
fn deferred() -> io::Result<IoUring> {
    IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(ENTRIES)
}

/// Whether waiting can simply be begun again.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
