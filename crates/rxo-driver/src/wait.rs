//! Waiting: for frames on several descriptors, or for a short time.
//!
//! The caller decides when and how long to wait. Contract: a signal ends a wait early and without an error,
//! so that a loop can check its stop flag at once.
#![allow(unsafe_code, reason = "ppoll and prctl take pointers or numbers")]

use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use libc::{c_short, pollfd, timespec};
use rxo_device::Descriptors;

/// Maximum number of descriptors in one wait.
pub const MOST_DESCRIPTORS: usize = 32;

/// The set of descriptors that are ready, as a bitmap: bit `n` for descriptor `n`.
///
/// An error or a hang-up counts as ready: the next `receive` returns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready(u32);

impl Ready {
    /// Returns `true` if no descriptor is ready: the timeout has passed, or a signal arrived.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns `true` if descriptor `n` is ready.
    #[must_use]
    pub const fn has(self, n: usize) -> bool {
        n < MOST_DESCRIPTORS && self.0 & (1 << n) != 0
    }

    /// Returns `true` if a descriptor in `places`, a range that [`WaitList::add`] returned, is ready.
    #[must_use]
    pub fn has_any(self, mut places: Range<usize>) -> bool {
        places.any(|n| self.has(n))
    }
}

/// The event for which a descriptor is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Wait until the descriptor can be read.
    Readable,
    /// Wait until the descriptor can be written to.
    Writable,
}

/// The descriptors of one wait, each with the event to wait for. Allocates nothing.
pub struct WaitList<'f> {
    polled: [pollfd; MOST_DESCRIPTORS],
    count: usize,
    descriptors: PhantomData<BorrowedFd<'f>>,
}

impl<'f> WaitList<'f> {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        let unused = pollfd { fd: -1, events: 0, revents: 0 };
        Self { polled: [unused; MOST_DESCRIPTORS], count: 0, descriptors: PhantomData }
    }

    /// Adds all descriptors of `end`; none if `end` is `None`. Returns their positions in the list.
    /// Descriptors beyond [`MOST_DESCRIPTORS`] are ignored.
    pub fn add<E: Descriptors + ?Sized>(
        &mut self,
        end: Option<&'f E>,
        interest: Interest,
    ) -> Range<usize> {
        let start = self.count;
        if let Some(end) = end {
            end.visit_descriptors(&mut |fd| self.push(fd, interest));
        }
        start..self.count
    }

    /// Waits until a descriptor is ready, or `timeout` has passed; `None` waits without limit. A
    /// memory-mapped ring also counts as readable while its newest frame is held.
    ///
    /// # Errors
    /// If the system refuses. A signal is not an error.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Ready> {
        let time = timeout.map(to_timespec);
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let polled = &mut self.polled[..self.count];
        // SAFETY: `polled` is a slice of live structures, and `time` is null or a live `timespec`.
        let result =
            unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as _, time, std::ptr::null()) };
        if result < 0 {
            let error = io::Error::last_os_error();
            let is_signal = error.kind() == io::ErrorKind::Interrupted;
            return if is_signal { Ok(Ready::default()) } else { Err(error) };
        }
        let bit = |(n, polled): (usize, &pollfd)| u32::from(polled.revents != 0) << n;
        Ok(Ready(polled.iter().enumerate().map(bit).sum()))
    }

    fn push(&mut self, fd: BorrowedFd<'_>, interest: Interest) {
        if let Some(place) = self.polled.get_mut(self.count) {
            *place = pollfd { fd: fd.as_raw_fd(), events: interest.events(), revents: 0 };
            self.count += 1;
        }
    }
}

impl Default for WaitList<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// Waits until one of `fds` is readable, or `timeout` has passed; `None` waits without limit. Allocates
/// nothing. Descriptors beyond [`MOST_DESCRIPTORS`] are ignored.
///
/// # Errors
/// If the system refuses. A signal is not an error.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Ready> {
    let mut list = WaitList::new();
    fds.iter().for_each(|fd| list.push(*fd, Interest::Readable));
    list.wait(timeout)
}

/// Returns `true` if the other end of a connected unix socket is closed. Bytes that it has sent may still be
/// unread.
pub(crate) fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut polled = pollfd { fd: fd.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: the structure is live, and the only one.
    let result = unsafe { libc::poll(&raw mut polled, 1, 0) };
    result > 0 && polled.revents & libc::POLLHUP != 0
}

/// Suspends this thread for `time`. A signal ends the pause early.
pub fn pause(time: Duration) {
    // With nothing to wait for, the only outcomes are the timeout and a signal.
    let _ended = WaitList::new().wait(Some(time));
}

/// Sets the timer slack of this thread to its minimum, so that short waits end on time. By default the kernel
/// delays the end of a wait by up to 50 µs, which is half of a 100 µs pause.
pub fn use_precise_timers() {
    // SAFETY: the call takes only numbers. A refusal leaves waits less precise, nothing else.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

impl Interest {
    const fn events(self) -> c_short {
        match self {
            Self::Readable => libc::POLLIN,
            Self::Writable => libc::POLLOUT,
        }
    }
}

fn to_timespec(time: Duration) -> timespec {
    timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX) as _,
        tv_nsec: time.subsec_nanos() as _,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn says_which_descriptor_has_something() {
        let (quiet, _quiet_peer) = UnixStream::pair().unwrap();
        let (busy, mut busy_peer) = UnixStream::pair().unwrap();
        busy_peer.write_all(b"x").unwrap();
        let ready = wait_readable(&[quiet.as_fd(), busy.as_fd()], None).unwrap();
        assert!(!ready.has(0) && ready.has(1));
    }

    #[test]
    fn a_full_descriptor_can_be_written_to_when_it_is_read() {
        let (mut writer, mut reader) = UnixStream::pair().unwrap();
        writer.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(bytes) = writer.write(&[0; 4_096]) {
            written += bytes;
        }
        let fd = writer.as_fd();
        let mut list = WaitList::new();
        let room = list.add(Some(&fd), Interest::Writable);
        let bytes = list.add(Some(&fd), Interest::Readable);
        let brief = Some(Duration::from_micros(50));
        assert!(list.wait(brief).unwrap().is_none());
        reader.read_exact(&mut vec![0; written]).unwrap();
        let ready = list.wait(None).unwrap();
        assert!(ready.has_any(room) && !ready.has_any(bytes));
    }

    /// An end of a device with three descriptors.
    struct Queues([UnixStream; 3]);

    impl Descriptors for Queues {
        fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
            self.0.iter().for_each(|queue| visit(queue.as_fd()));
        }
    }

    #[test]
    fn any_descriptor_of_an_end_wakes_for_that_end() {
        let pairs = [(); 6].map(|()| UnixStream::pair().unwrap());
        let [(a, _a), (b, mut busy_peer), (c, _c), (d, _d), (e, _e), (f, _f)] = pairs;
        let (busy, quiet) = (Queues([a, b, c]), Queues([d, e, f]));
        busy_peer.write_all(b"x").unwrap();
        let mut list = WaitList::new();
        let none = list.add(None::<&Queues>, Interest::Readable);
        let quiet = list.add(Some(&quiet), Interest::Readable);
        let busy = list.add(Some(&busy), Interest::Readable);
        let ready = list.wait(None).unwrap();
        assert_eq!([none, quiet, busy].map(|places| ready.has_any(places)), [false, false, true]);
    }

    #[test]
    fn the_time_is_up_when_nothing_comes() {
        let (quiet, _peer) = UnixStream::pair().unwrap();
        let ready = wait_readable(&[quiet.as_fd()], Some(Duration::from_micros(50))).unwrap();
        assert!(ready.is_none());
    }

    #[test]
    fn a_hang_up_counts_as_something() {
        let (left, right) = UnixStream::pair().unwrap();
        drop(right);
        assert!(wait_readable(&[left.as_fd()], None).unwrap().has(0));
    }

    #[test]
    fn a_hang_up_is_told_from_bytes() {
        let (left, mut right) = UnixStream::pair().unwrap();
        right.write_all(b"x").unwrap();
        assert!(!has_hung_up(left.as_fd()));
        drop(right);
        assert!(has_hung_up(left.as_fd()));
    }
}
