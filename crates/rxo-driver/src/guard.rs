//! A process beside the one that works, so that what was changed is put back however that one ends.
//!
//! [`split`] makes two processes of one. They hold the same locks and sockets and know the same; a
//! channel is between them, which ends with either. So each sees at once that the other is gone,
//! whether it ended, panicked, or was killed, and can do what is left to do.
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
    /// The new one; this is its end of the channel.
    Worker(UnixStream),
}

/// The other process, as the first sees it.
#[derive(Debug)]
pub struct Worker {
    /// Its end of the channel.
    pub channel: UnixStream,
    process: pid_t,
}

/// Makes two processes of this one, which must have one thread only.
///
/// # Errors
/// When it has more threads, or the system has no room for another process.
pub fn split() -> io::Result<Side> {
    // Whatever lock another thread held would be held for ever in the new process.
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
    /// Ends it at once.
    pub fn kill(&self) {
        // SAFETY: kill takes numbers only. The process was not waited for, so that its number is
        // still its own.
        unsafe { libc::kill(self.process, libc::SIGKILL) };
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When the system does not say.
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
