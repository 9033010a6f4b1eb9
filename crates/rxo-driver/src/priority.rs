//! The nice value of the thread that carries frames.
//!
//! A kernel receives at the priority of interrupts. A process that receives in its place waits for every other process
//! that wants the processor, for milliseconds, unless it comes before them.
#![allow(unsafe_code, reason = "system calls for which the standard library has no name")]

use std::io;

use libc::{SCHED_OTHER, c_int, c_long};

use crate::sys::check;

/// `sched_attr` as the first kernels with the call had it.
#[derive(Debug, Default)]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The flag of a thread whose threads do not come before others.
const RESET_ON_FORK: u64 = 1;

/// Gives the calling thread this nice value, from −20 (before all others) to 19. Threads that it starts later begin at
/// 0 if the value is negative. A thread with a real-time policy keeps that.
///
/// # Errors
/// If the system refuses: a value below the thread's own needs `CAP_SYS_NICE`, or a limit (`RLIMIT_NICE`) that allows it.
pub fn set_nice(nice: i8) -> io::Result<()> {
    // musl has no function for either call. And systemd's `RestrictRealtime=` takes the flag of `sched_setscheduler` for
    // a real-time policy.
    // SAFETY: takes an integer only.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    if policy != c_long::from(SCHED_OTHER) {
        return Ok(());
    }
    let size = size_of::<Attributes>() as u32;
    let attributes =
        Attributes { size, flags: RESET_ON_FORK, nice: nice.into(), ..Attributes::default() };
    // SAFETY: the kernel reads `size` bytes of a live structure.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    check(set as c_int).map(drop)
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
