//! Priority: sets the nice value of the thread that carries frames.
//!
//! A kernel receives frames at interrupt priority. A process that receives frames instead of the kernel may have
//! to wait for milliseconds while other processes use the processor, unless its priority is higher.
#![allow(unsafe_code, reason = "system calls for which the standard library has no name")]

use std::io;

use libc::{SCHED_OTHER, c_int, c_long};

use crate::sys::check;

/// The structure `sched_attr` in its first version.
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

/// The flag that resets the nice value of new threads to 0 if it is negative.
const RESET_ON_FORK: u64 = 1;

/// Sets the nice value of the calling thread, from −20 (highest priority) to 19. Threads that it starts later
/// begin at 0 if the value is negative, unless `is_inherited`. A thread with a real-time policy is left
/// unchanged.
///
/// # Errors
/// If the system refuses: a value below the thread's own needs `CAP_SYS_NICE`, or a limit (`RLIMIT_NICE`)
/// that allows it.
pub fn set_nice(nice: i8, is_inherited: bool) -> io::Result<()> {
    // Raw system calls: musl has no function for either, and systemd's `RestrictRealtime=` mistakes the flag
    // of `sched_setscheduler` for a real-time policy.
    // SAFETY: the call takes only an integer.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    if policy != c_long::from(SCHED_OTHER) {
        return Ok(());
    }
    let size = size_of::<Attributes>() as u32;
    let flags = if is_inherited { 0 } else { RESET_ON_FORK };
    let attributes = Attributes { size, flags, nice: nice.into(), ..Attributes::default() };
    // SAFETY: the kernel reads `size` bytes of a live structure.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    check(set as c_int).map(drop)
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// Reads the nice value of the calling thread.
    fn nice() -> i64 {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        // The name may contain spaces; the nice value is the 17th field after it.
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn threads_that_carry_frames_have_it_from_the_one_that_starts_them() {
        thread::spawn(|| match set_nice(-7, true) {
            Ok(()) => assert_eq!((nice(), thread::spawn(nice).join().unwrap()), (-7, -7)),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_has_it_and_the_threads_that_it_starts_do_not() {
        thread::spawn(|| match set_nice(-7, false) {
            Ok(()) => assert_eq!((nice(), thread::spawn(nice).join().unwrap()), (-7, 0)),
            // Without privilege the system refuses, which is correct as well.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        })
        .join()
        .unwrap();
        thread::spawn(|| {
            set_nice(19, false).unwrap();
            assert_eq!((nice(), thread::spawn(nice).join().unwrap()), (19, 19));
        })
        .join()
        .unwrap();
    }
}
