//! Guard process: undoes the changes of a run when the worker process ends, for whatever reason.
//!
//! [`split`] forks this process. Both processes hold the same locks and sockets, and begin with the same state. A
//! channel between them closes when either process ends, panics or is killed, so the other process notices the
//! end at once and can restore the interfaces. [`detach`] starts a process in a session of its own, for the case
//! that both processes are killed at once.
#![allow(unsafe_code, reason = "fork, kill and waitpid have no safe face in the standard library")]

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use libc::pid_t;

use crate::{clock, wait};

/// The two processes after [`split`], each of which gets its own value.
#[derive(Debug)]
pub enum Side {
    /// The original process, which waits for the worker.
    Keeper(Worker),
    /// The new process, which is the worker. The value is its end of the channel.
    Worker(UnixStream),
}

/// The keeper's handle on the worker process.
#[derive(Debug)]
pub struct Worker {
    /// The original process's end of the channel.
    pub channel: UnixStream,
    process: pid_t,
    /// A handle on a worker that another process has forked; `None` for a worker that this process has
    /// forked.
    adopted: Option<Process>,
}

/// Forks this process, which must have only one thread.
///
/// # Errors
/// If this process has more threads, or the system cannot start another process.
pub fn split() -> io::Result<Side> {
    let (keepers, workers) = UnixStream::pair()?;
    Ok(match fork()? {
        0 => Side::Worker(workers),
        process => Side::Keeper(Worker { channel: keepers, process, adopted: None }),
    })
}

/// The two processes after [`detach`], each of which gets its own value.
#[derive(Debug)]
pub enum Detached {
    /// The original process, which has called [`detach`].
    Here {
        /// The original process's end of the channel.
        channel: UnixStream,
        /// The new process, as a child of the original one.
        child: Child,
    },
    /// The new process, in a session of its own.
    There {
        /// The new process's end of the channel.
        channel: UnixStream,
        /// A handle on the process that called [`detach`], and its process number; `None` before Linux 5.3.
        starter: Option<(Process, u32)>,
    },
}

/// Starts a process in a session of its own, which `ps` shows as `name`. A terminal or a process group cannot
/// end it, it ignores the signals that ask it to end, and the kernel kills it last when memory runs out. The
/// calling process must have only one thread.
///
/// # Errors
/// Returns the errors of [`split`].
pub fn detach(name: &str) -> io::Result<Detached> {
    let (here, there) = UnixStream::pair()?;
    // SAFETY: the call has no arguments.
    let number = unsafe { libc::getpid() };
    let starter = Process::of(number).map(|process| (process, number.unsigned_abs()));
    let child = fork()?;
    if child > 0 {
        return Ok(Detached::Here { channel: here, child: Child(child) });
    }
    drop(here);
    // SAFETY: the call has no arguments. It fails only for the leader of a group, which a new process is not.
    unsafe { libc::setsid() };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: the call ignores a signal; there is no handler whose safety would matter.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    protect();
    // If the name cannot be set, `ps` shows the program's name, which is acceptable.
    _ = fs::write("/proc/self/comm", name);
    Ok(Detached::There { channel: there, starter })
}

/// Waits until the process at the other end of `channel` has ended, or has closed its end.
pub fn await_end(channel: &UnixStream) {
    let mut channel = channel;
    // The other end never sends a byte. A read error counts as its end.
    while matches!(io::Read::read(&mut channel, &mut [0]), Ok(1)) {}
}

/// Asks the kernel to kill this process last when memory runs out. Does nothing without privilege.
pub fn protect() {
    _ = fs::write("/proc/self/oom_score_adj", "-1000");
}

fn fork() -> io::Result<pid_t> {
    // A lock that another thread holds would stay locked in the new process.
    if fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        return Err(io::Error::other("a process with several threads cannot be split"));
    }
    // SAFETY: `fork` has no arguments; the process has one thread, so no other thread's work is unfinished in
    // the new process.
    match unsafe { libc::fork() } {
        process if process >= 0 => Ok(process),
        _ => Err(io::Error::last_os_error()),
    }
}

fn wait_for(process: pid_t) -> io::Result<libc::c_int> {
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one integer, which lives through the call.
        if unsafe { libc::waitpid(process, &raw mut status, 0) } == process {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// A process that this process has started.
#[derive(Debug)]
pub struct Child(pid_t);

impl Child {
    /// Waits at most `limit` for the end of the process.
    pub fn wait_within(self, limit: Duration) {
        let until = clock::now() + limit;
        let mut status = 0;
        // SAFETY: the kernel writes one integer, which lives through the call.
        while unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) } == 0
            && clock::now() < until
        {
            wait::pause(Duration::from_millis(1));
        }
    }
}

/// A handle on a process (pidfd), which stays valid even if the process number is reused.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// Opens a handle on this process, to be sent to another one; `None` before Linux 5.3.
    pub(crate) fn own() -> Option<OwnedFd> {
        Self::of(std::process::id().cast_signed()).map(|process| process.0)
    }

    /// Opens a handle on the process that has this number now. `None` if there is none, or before Linux 5.3.
    fn of(process: pid_t) -> Option<Self> {
        // SAFETY: the call takes only numbers.
        let file = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
        let file = i32::try_from(file).ok().filter(|&file| file >= 0)?;
        // SAFETY: the kernel has just made the descriptor, and it has no other owner.
        Some(Self(unsafe { OwnedFd::from_raw_fd(file) }))
    }

    /// Kills the process. A process that has ended already is not an error.
    pub fn kill(&self) {
        let (file, none) = (self.0.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
        // SAFETY: the descriptor is open, and no information is given.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, file, libc::SIGKILL, none, 0) };
    }
}

impl AsFd for Process {
    /// Returns a descriptor that becomes readable once the process has ended and released its resources.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Process {
    /// Takes ownership of a pidfd that another process has opened and sent.
    fn from(file: OwnedFd) -> Self {
        Self(file)
    }
}

impl Worker {
    /// Creates the handle of a worker that another process has forked: the process at the other end of
    /// `channel`.
    pub(crate) const fn adopt(channel: UnixStream, handle: Process, number: u32) -> Self {
        Self { channel, process: number.cast_signed(), adopted: Some(handle) }
    }

    /// Kills the worker process.
    pub fn kill(&self) {
        if let Some(process) = &self.adopted {
            return process.kill();
        }
        // SAFETY: `kill` takes only numbers. The process was not waited for, so that its number is still its
        // own.
        unsafe { libc::kill(self.process, libc::SIGKILL) };
    }

    /// Waits for the end of the worker process. Returns `None` for a worker that this process has not forked.
    ///
    /// # Errors
    /// If the system refuses to wait for the process.
    pub fn wait(self) -> io::Result<Option<ExitStatus>> {
        match self.adopted {
            None => wait_for(self.process).map(|status| Some(ExitStatus::from_raw(status))),
            Some(process) => wait::wait_readable(&[process.as_fd()], None).map(|_| None),
        }
    }

    /// Returns `true` if the worker has ended. A forked worker that has ended is removed from the table of
    /// processes.
    pub(crate) fn has_ended(&self) -> bool {
        let mut status = 0;
        // SAFETY: the kernel writes one integer, which lives through the call.
        self.adopted.is_some()
            || unsafe { libc::waitpid(self.process, &raw mut status, libc::WNOHANG) }
                == self.process
    }

    /// Returns the process number of the worker.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.process.unsigned_abs()
    }

    /// Opens a pidfd of the worker, to be sent to another process; `None` before Linux 5.3.
    pub(crate) fn descriptor(&self) -> Option<OwnedFd> {
        if let Some(process) = &self.adopted {
            return process.0.try_clone().ok();
        }
        Process::of(self.process).map(|process| process.0)
    }
}
