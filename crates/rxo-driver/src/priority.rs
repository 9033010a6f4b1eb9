//! The nice value of the thread that carries frames.
//!
//! A kernel receives at the priority of interrupts. A process that receives in its place waits for every other process
//! that wants the processor, for milliseconds, unless it comes before them.
#![allow(unsafe_code, reason = "system calls for which the standard library has no name")]

use std::io;
use std::mem::zeroed;

use libc::{SCHED_OTHER, SCHED_RESET_ON_FORK, c_int, c_long, sched_param};

use crate::sys::check;

/// Gives the calling thread this nice value, from −20 (before all others) to 19. Threads that it starts later begin at
/// 0 if the value is negative, unless the service manager forbids to say so. A thread with a real-time policy keeps that.
///
/// # Errors
/// If the system refuses: a value below the thread's own needs `CAP_SYS_NICE`, or a limit (`RLIMIT_NICE`) that allows it.
pub fn set_nice(nice: i8) -> io::Result<()> {
    // musl has no `sched_getscheduler` and no `sched_setscheduler`.
    // SAFETY: takes an integer only.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    if policy != c_long::from(SCHED_OTHER) {
        return Ok(());
    }
    // SAFETY: takes integers only.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, c_int::from(nice)) })?;
    if nice < 0 {
        // SAFETY: integers, for which zero is a value.
        let parameters: sched_param = unsafe { zeroed() };
        let policy = SCHED_OTHER | SCHED_RESET_ON_FORK;
        // systemd's `RestrictRealtime=` refuses it: it takes the flag for another policy.
        // SAFETY: the kernel reads a live structure.
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// The nice value of the calling thread.
    fn nice() -> i64 {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        // Behind the name, which may have spaces, it is the 17th field.
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn a_thread_has_it_and_the_threads_that_it_starts_do_not() {
        thread::spawn(|| match set_nice(-7) {
            Ok(()) => assert_eq!((nice(), thread::spawn(nice).join().unwrap()), (-7, 0)),
            // Tests run by anybody.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        })
        .join()
        .unwrap();
        thread::spawn(|| {
            set_nice(19).unwrap();
            assert_eq!((nice(), thread::spawn(nice).join().unwrap()), (19, 19));
        })
        .join()
        .unwrap();
    }
}
