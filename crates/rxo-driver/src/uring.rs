//! Writer for TAPs: submits many writes in one system call, through io_uring.
//!
//! Batching does not make a write cheaper. But it prevents a reader, which a write has woken, from taking the
//! processor between two writes.
//!
//! Contract: the writes of a batch are linked, so the kernel executes them in order, and stops after a write
//! that fails. When `write` returns, the kernel no longer uses the pieces, even if the queue itself failed. A
//! failed queue is not used again; every further write is a system call of its own. The queue accepts only
//! writes to one file, because io_uring could open files and sockets that a system call filter refuses.
#![allow(unsafe_code, reason = "the submission queue takes pointers")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::register::Restriction;
use io_uring::squeue::{Entry, Flags};
use io_uring::{Builder, IoUring, opcode, types};

use crate::transmit::batch::Sealed;
use crate::transmit::{Writer, Writev, Written};
use crate::wait;

/// Maximum number of writes in one submission.
const ENTRIES: u32 = 128;

/// The index of the file in the ring's table of registered files.
const FILE: types::Fixed = types::Fixed(0);

/// A writer with an io_uring for one file.
pub(crate) struct Uring<F> {
    ring: IoUring,
    /// The fallback: one `writev` per packet, used once the io_uring has failed.
    singly: Writev<F>,
    is_enabled: bool,
    has_failed: bool,
    /// The result of each write in the current submission.
    results: Vec<i32>,
}

impl<F: AsFd> Uring<F> {
    /// Sets up the io_uring of `file`. Fails if the system lacks io_uring or forbids it.
    pub(crate) fn new(file: Arc<F>) -> io::Result<Self> {
        let ring = deferred().or_else(|_older_kernel| disabled().build(ENTRIES))?;
        let submitter = ring.submitter();
        submitter.register_files(&[file.as_fd().as_raw_fd()])?;
        submitter.register_restrictions(&mut [
            Restriction::sqe_op(opcode::Writev::CODE),
            Restriction::sqe_flags_allowed((Flags::FIXED_FILE | Flags::IO_LINK).bits()),
            Restriction::register_op(UNREGISTER_FILES),
        ])?;
        let results = Vec::with_capacity(ENTRIES as usize);
        let (is_enabled, has_failed) = (false, false);
        Ok(Self { ring, singly: Writev::new(file), is_enabled, has_failed, results })
    }

    /// Enables the queue for the calling thread, the only one that may submit from now on.
    #[cold]
    fn enable(&mut self) {
        self.is_enabled = true;
        self.has_failed |= self.ring.submitter().register_enable_rings().is_err();
    }

    /// Queues the writes that start at index `from`. Returns the number of writes that fit into the queue.
    fn queue(&mut self, batch: &Sealed<'_, '_>, from: usize) -> usize {
        let count = (batch.list().len() - from).min(ENTRIES as usize);
        let mut queue = self.ring.submission();
        for n in 0..count {
            let pieces = batch.pieces(from + n);
            let entry = write_entry(pieces, n as u64, n + 1 < count);
            // SAFETY: the pieces are live while the batch is, and `write` does not return before
            // the kernel has completed every entry that it has taken.
            if unsafe { queue.push(&entry) }.is_err() {
                // The caller waits for queued entries only, so later ones are not queued.
                return n;
            }
        }
        count
    }
}

/// Tries to create an io_uring. Returns `true` if the kernel supports deferred task work
/// (`IORING_SETUP_DEFER_TASKRUN`, Linux 6.1).
///
/// # Errors
/// If the system lacks io_uring or forbids it.
pub(crate) fn probe() -> io::Result<bool> {
    deferred().map(|_| true).or_else(|_older_kernel| IoUring::new(ENTRIES).map(|_| false))
}

/// The operations of an io_uring that `complete` needs. This is a trait, so that a test can use a queue that
/// fails.
trait Queue {
    /// Submits the queued entries, and waits until `count` entries are completed.
    fn submit_and_wait(&mut self, count: usize) -> io::Result<()>;

    /// Waits until `count` entries are completed, without submitting any.
    fn wait(&mut self, count: usize) -> io::Result<()>;

    /// Returns the number of queued entries that the kernel has not accepted.
    fn left(&mut self) -> usize;

    /// Calls `done` with the number and the result of each entry that is completed.
    fn completed(&mut self, done: impl FnMut(u64, i32));
}

/// Submits the queued entries, and waits until the kernel has completed all entries that it accepted. Returns
/// the number of system calls, and `true` if the queue has failed.
fn complete(queue: &mut impl Queue, results: &mut [i32]) -> (u64, bool) {
    let (mut done, mut taken) = (0, results.len());
    let (mut submissions, mut has_failed) = (0, false);
    while done < taken {
        submissions += 1;
        let waited = match has_failed {
            false => queue.submit_and_wait(taken - done),
            true => queue.wait(taken - done),
        };
        let is_refused = waited.is_err_and(|error| !is_passing(&error));
        if is_refused && has_failed {
            // The kernel completes accepted entries even if no thread waits for them.
            wait::pause(FAILED_PAUSE);
        }
        if is_refused && !has_failed {
            has_failed = true;
            taken -= queue.left();
        }
        queue.completed(|number, result| {
            results[number as usize] = result;
            done += 1;
        });
    }
    (submissions, has_failed)
}

/// The time between two checks of a failed io_uring, on which this thread cannot wait.
const FAILED_PAUSE: Duration = Duration::from_micros(50);

impl Queue for IoUring {
    fn submit_and_wait(&mut self, count: usize) -> io::Result<()> {
        Self::submit_and_wait(self, count).map(|_| ())
    }

    fn wait(&mut self, count: usize) -> io::Result<()> {
        // SAFETY: with nothing to submit no entry is read, and there is no argument.
        let waited =
            unsafe { self.submitter().enter::<libc::sigset_t>(0, count as u32, GET_EVENTS, None) };
        waited.map(|_| ())
    }

    fn left(&mut self) -> usize {
        let mut queue = self.submission();
        queue.sync();
        queue.len()
    }

    fn completed(&mut self, mut done: impl FnMut(u64, i32)) {
        self.completion().for_each(|entry| done(entry.user_data(), entry.result()));
    }
}

/// The flag `IORING_ENTER_GETEVENTS`: wait for completions.
const GET_EVENTS: u32 = 1;

impl<F: AsFd> Writer for Uring<F> {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        if !self.is_enabled {
            self.enable();
        }
        if self.has_failed {
            return self.singly.write(batch, from);
        }
        let count = self.queue(batch, from);
        if count == 0 {
            // Every submission empties the queue, so a full queue means that it is broken.
            self.has_failed = true;
            return self.singly.write(batch, from);
        }
        self.results.clear();
        self.results.resize(count, -libc::ECANCELED);
        let (submissions, has_failed) = complete(&mut self.ring, &mut self.results);
        self.has_failed = has_failed;
        let sent = self.results.iter().take_while(|&&result| result >= 0).count();
        let refused = match self.results.get(sent) {
            None => None,
            // The queue failed, not the packet: with this error, the packet is written again singly.
            Some(_) if self.has_failed => Some(libc::EINTR),
            Some(code) => Some(-code),
        };
        let refused = refused.map(io::Error::from_raw_os_error);
        Written { sent, submissions, refused, ..Written::default() }
    }
}

impl<F> Drop for Uring<F> {
    fn drop(&mut self) {
        // The kernel destroys a ring only later. If the ring kept the file until then, the interface would
        // outlive its last user, and its name would stay taken.
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

/// Creates an io_uring with deferred task work (`IORING_SETUP_DEFER_TASKRUN`): linked entries run on the
/// thread that waits for completions, inside its system call. A link then costs nothing (otherwise about 100
/// ns). Only the thread that enables the ring may submit.
fn deferred() -> io::Result<IoUring> {
    disabled().setup_single_issuer().setup_defer_taskrun().build(ENTRIES)
}

/// Prepares an io_uring that starts disabled (`IORING_SETUP_R_DISABLED`, Linux 5.10): it can be restricted,
/// and accepts no entries until it is enabled.
fn disabled() -> Builder {
    let mut builder = IoUring::builder();
    builder.setup_r_disabled();
    builder
}

/// The operation `IORING_UNREGISTER_FILES`: remove the table of registered files.
const UNREGISTER_FILES: u8 = 3;

/// Returns `true` if the error is transient (EINTR, EAGAIN, EBUSY), so that the wait can be retried.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use rxo_frame::{Frame, Instant};

    use super::*;
    use crate::transmit::Transmitter;
    use crate::transmit::batch::Form;

    /// A queue that fails after the kernel has accepted some of its entries, which complete later.
    struct Failing {
        queued: usize,
        /// The number of entries that the kernel accepts before the queue fails.
        takes: usize,
        /// The number of calls before the first entry completes; each later call completes one more.
        slow: usize,
        completed: usize,
        calls: usize,
    }

    impl Queue for Failing {
        fn submit_and_wait(&mut self, _: usize) -> io::Result<()> {
            assert_eq!(self.calls, 0, "nothing is submitted to a queue that has failed");
            self.calls += 1;
            self.queued -= self.takes;
            Err(io::Error::from_raw_os_error(libc::EBADR))
        }

        fn wait(&mut self, _: usize) -> io::Result<()> {
            self.calls += 1;
            Err(io::Error::from_raw_os_error(libc::EINVAL))
        }

        fn left(&mut self) -> usize {
            self.queued
        }

        fn completed(&mut self, mut done: impl FnMut(u64, i32)) {
            if self.calls > self.slow && self.completed < self.takes {
                done(self.completed as u64, 60);
                self.completed += 1;
            }
        }
    }

    #[test]
    fn a_queue_that_fails_is_waited_for_as_far_as_the_kernel_has_taken_it() {
        for takes in 0..=8 {
            for slow in [0, 1, 5] {
                let mut queue = Failing { queued: 8, takes, slow, completed: 0, calls: 0 };
                let mut results = [-libc::ECANCELED; 8];
                let (_, has_failed) = complete(&mut queue, &mut results);
                assert!(has_failed);
                assert_eq!(queue.completed, takes, "all that is in flight has come back");
                let sent = results.iter().take_while(|&&result| result >= 0).count();
                assert_eq!(sent, takes);
            }
        }
    }

    /// A queue belongs to the thread that enabled it; on another thread it fails, and no packet may be lost.
    #[test]
    fn what_a_failed_queue_did_not_take_goes_one_by_one() {
        assert_eq!(
            calls_on_another_thread(Uring::enable),
            11,
            "one that fails, and one for each packet"
        );
    }

    #[test]
    fn a_queue_belongs_to_the_thread_that_writes_first() {
        assert_eq!(calls_on_another_thread(|_| ()), 1);
    }

    /// Writes ten packets on another thread than that of `prepare`. Returns the number of system calls.
    fn calls_on_another_thread(prepare: impl FnOnce(&mut Uring<UnixStream>)) -> u64 {
        let (file, mut peer) = UnixStream::pair().unwrap();
        let mut queue = Uring::new(Arc::new(file)).expect("a system with io_uring");
        prepare(&mut queue);
        let frames: Vec<_> = (0..10).map(|n| vec![n; 60]).collect();
        let sent = frames.clone();
        let counters = thread::spawn(move || {
            let mut transmitter = Transmitter::new(queue, Form::ETHERNET);
            let frames = sent.iter().map(|bytes| Frame::new(&bytes[..], Instant::ZERO));
            transmitter.transmit(frames).unwrap();
            transmitter.counters()
        });
        let counters = counters.join().unwrap();
        assert_eq!((counters.packets, counters.dropped), (10, 0));
        for frame in frames {
            let mut seen = [0; 70];
            peer.read_exact(&mut seen).unwrap();
            assert_eq!(seen[10..], frame);
        }
        counters.submissions
    }
}
