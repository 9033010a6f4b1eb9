//! Waiting: for frames on several descriptors, or for a short time.
//!
//! When and how long to wait is the worker loop's decision; this only carries it out. Contract:
//! a signal ends a wait early and without an error, so that a loop sees its stop flag at once.
#![allow(unsafe_code, reason = "ppoll and prctl take pointers or numbers")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use libc::{c_short, pollfd, timespec};

/// The most descriptors one wait takes.
pub const MOST_DESCRIPTORS: usize = 16;

/// Which of the descriptors waited for have something: bit `n` is the `n`-th.
///
/// An error or a hang-up counts as something: the next `receive` says what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready(u16);

impl Ready {
    /// Whether none has: the time was up, or a signal came.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether the `n`-th has.
    #[must_use]
    pub const fn has(self, n: usize) -> bool {
        n < MOST_DESCRIPTORS && self.0 & (1 << n) != 0
    }
}

/// Waits until one of `fds` can be read, or `timeout` has passed; `None` waits for ever.
/// Allocates nothing. A memory-mapped ring counts as readable also while the newest frame of it
/// is still held by the caller.
///
/// # Errors
/// When the system refuses.
///
/// # Panics
/// Never; descriptors beyond [`MOST_DESCRIPTORS`] are not waited for.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Ready> {
    wait(fds.iter().map(|fd| (*fd, Interest::Readable)), timeout)
}

/// What is waited for on a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// That it can be read.
    Readable,
    /// That it can be written to.
    Writable,
}

/// Waits until one of `wanted` is as wanted, or `timeout` has passed; `None` waits for ever. As
/// [`wait_readable`] otherwise.
///
/// # Errors
/// When the system refuses.
pub fn wait_for<'f>(
    wanted: impl IntoIterator<Item = (BorrowedFd<'f>, Interest)>,
    timeout: Option<Duration>,
) -> io::Result<Ready> {
    wait(wanted.into_iter(), timeout)
}

/// Gives the processor away for `time`. A signal ends it early.
pub fn pause(time: Duration) {
    // With nothing to wait for, the only outcomes are the timeout and a signal.
    let _ended = wait(std::iter::empty(), Some(time));
}

/// Lets this thread's short waits end on time: the kernel otherwise adds up to 50 µs, which is
/// half of a 100 µs pause.
pub fn use_precise_timers() {
    // SAFETY: takes numbers only. A refusal leaves waits less precise, nothing else.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

fn wait<'f>(
    wanted: impl Iterator<Item = (BorrowedFd<'f>, Interest)>,
    timeout: Option<Duration>,
) -> io::Result<Ready> {
    let mut polled = [pollfd { fd: -1, events: 0, revents: 0 }; MOST_DESCRIPTORS];
    let mut count = 0;
    for (slot, (fd, interest)) in polled.iter_mut().zip(wanted) {
        *slot = pollfd { fd: fd.as_raw_fd(), events: interest.events(), revents: 0 };
        count += 1;
    }
    let time = timeout.map(to_timespec);
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `polled` holds `count` structures, and `time` is null or a live `timespec`.
    let result = unsafe { libc::ppoll(polled.as_mut_ptr(), count as _, time, std::ptr::null()) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok(Ready::default())
        } else {
            Err(error)
        };
    }
    let bit = |(n, slot): (usize, &pollfd)| u16::from(slot.revents != 0) << n;
    Ok(Ready(polled[..count].iter().enumerate().map(bit).sum()))
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
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
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
        let wanted = [(writer.as_fd(), Interest::Writable), (writer.as_fd(), Interest::Readable)];
        let brief = Some(Duration::from_micros(50));
        assert!(wait_for(wanted, brief).unwrap().is_none());
        reader.read_exact(&mut vec![0; written]).unwrap();
        let ready = wait_for(wanted, None).unwrap();
        assert!(ready.has(0) && !ready.has(1));
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
}
