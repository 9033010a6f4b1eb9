//! Guard process: undoes the changes of a run however the working process ends.
//!
//! [`split`] forks this process. Both processes hold the same locks and sockets, and have the same
//! state. A channel between them closes when either ends, so each notices at once that the other has
//! ended, panicked or was killed, and can do the rest.
#![allow(unsafe_code, reason = "fork, kill and waitpid have no safe face in the standard library")]

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use libc::pid_t;

/// Which of the two processes this one is.
#[derive(Debug)]
pub enum Side {
    /// The first one, which waits for the other.
    Keeper(Worker),
    /// The new process, with its end of the channel.
    Worker(UnixStream),
}

/// The new process, as the first one has it.
#[derive(Debug)]
pub struct Worker {
    /// This process's end of the channel.
    pub channel: UnixStream,
    process: pid_t,
}

/// Forks this process, which must have only one thread.
///
/// # Errors
/// If it has more threads, or the system cannot start another process.
pub fn split() -> io::Result<Side> {
    // A lock that another thread held would stay locked in the new process.
    if fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        return Err(io::Error::other("a process with several threads cannot be split"));
    }
    let (keepers, workers) = UnixStream::pair()?;
    // SAFETY: fork takes nothing; with one thread nothing is left half done in the new process.
    match unsafe { libc::fork() } {
        0 => Ok(Side::Worker(workers)),
        process if process > 0 => Ok(Side::Keeper(Worker { channel: keepers, process })),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Worker {
    /// Kills it.
    pub fn kill(&self) {
        // SAFETY: kill takes numbers only. The process was not waited for, so that its number is
        // still its own.
        unsafe { libc::kill(self.process, libc::SIGKILL) };
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If the system refuses to wait for it.
    pub fn wait(self) -> io::Result<ExitStatus> {
        let mut status = 0;
        loop {
            // SAFETY: the kernel writes one integer, which lives through the call.
            if unsafe { libc::waitpid(self.process, &raw mut status, 0) } == self.process {
                return Ok(ExitStatus::from_raw(status));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}
